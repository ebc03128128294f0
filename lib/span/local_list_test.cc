#include "span/local_list.h"

#include <gtest/gtest.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>

#include <algorithm>
#include <random>
#include <set>

#include "os/stepper_test.h"
#include "os/threads_test.h"
#include "span/owned_span_test.h"

namespace rtspan {
namespace {

// The two ways, with one interface. A sequence may fail for no reason: then the other way follows, as in the library.
struct Cas {
    static constexpr const char* kName = "CAS";
    static bool is_there() { return true; }
    void* pop(const Atomic<Span*>& slot) { return cas_pop(slot); }
    void push(Span* span, void* block) { cas_push(span, block); }
};

#if RTSPAN_HAS_RSEQ
struct Rseq {
    static constexpr const char* kName = "rseq";
    static bool is_there() { return rseq_cs_of_thread() != nullptr; }
    void* pop(const Atomic<Span*>& slot) {
        if (void* block = rseq_pop(rseq_cs, &slot); block != nullptr) return block;
        if (void* block = rseq_pop_untouched(rseq_cs, &slot); block != nullptr) return block;
        return cas_pop(slot);
    }
    void push(Span* span, void* block) {
        LocalWord left = rseq_push(rseq_cs, span, block);
        EXPECT_NE(left.raw(), kSuspected);
        if (left.raw() == kAborted) cas_push(span, block);
    }
    uint64_t* rseq_cs = rseq_cs_of_thread();
};
using Ways = testing::Types<Cas, Rseq>;
#else
using Ways = testing::Types<Cas>;
#endif

const unsigned kSmall = class_of_size(48);

template <class Way>
class LocalList : public OwnedSpanTest {
  protected:
    void SetUp() override {
        if (!Way::is_there()) GTEST_SKIP() << "this thread has no restartable sequences";
        OwnedSpanTest::SetUp();
    }
};
struct WayNames {
    template <class Way>
    static std::string GetName(int) {
        return Way::kName;
    }
};
TYPED_TEST_SUITE(LocalList, Ways, WayNames);

TYPED_TEST(LocalList, nothing_comes_from_an_empty_span) {
    static constinit Span dummy;
    this->slot.store(&dummy, release);
    TypeParam way;
    for (int i = 0; i < 100; i++) ASSERT_EQ(way.pop(this->slot), nullptr);
    EXPECT_EQ(dummy.local().raw(), LocalWord().raw());
}

TYPED_TEST(LocalList, a_fresh_span_gives_its_blocks_in_order_of_address) {
    for (unsigned size_class = 0; size_class < kSizeClasses; size_class += 7) {
        this->span = nullptr;
        this->open(size_class);
        TypeParam way;
        const Geometry& g = this->shape();
        uintptr_t first = this->span->memory() + first_block_offset(g.group, this->span->index());
        for (uint32_t i = 0; i < g.capacity; i++) {
            ASSERT_EQ(reinterpret_cast<uintptr_t>(way.pop(this->slot)), first + i * g.block_size);
            ASSERT_EQ(this->span->local().count(), g.capacity - i - 1);
        }
        EXPECT_EQ(way.pop(this->slot), nullptr);
    }
}

TYPED_TEST(LocalList, last_in_first_out_and_then_the_untouched_rest) {
    this->open(kSmall);
    TypeParam way;
    char* a = static_cast<char*>(way.pop(this->slot));
    void* b = way.pop(this->slot);
    void* c = way.pop(this->slot);
    for (void* block : {b, static_cast<void*>(a), c}) way.push(this->span, block);
    EXPECT_EQ(way.pop(this->slot), c);
    EXPECT_EQ(way.pop(this->slot), a);
    EXPECT_EQ(way.pop(this->slot), b);
    EXPECT_EQ(way.pop(this->slot), a + 3 * 48) << "the bump mark went through the links";
    EXPECT_TRUE(this->span->local().is_bump());
}

TYPED_TEST(LocalList, agrees_with_a_vector) {
    this->open(kSmall);
    TypeParam way;
    std::vector<void*> model, out;
    const Geometry& g = this->shape();
    uintptr_t first = this->span->memory() + first_block_offset(g.group, this->span->index());
    for (uint32_t i = g.capacity; i-- > 0;) model.push_back(reinterpret_cast<void*>(first + i * g.block_size));
    std::mt19937 random(1);
    for (int i = 0; i < 50'000; i++) {
        if (random() % 100 < (i / 4000 % 2 == 0 ? 70u : 30u)) {
            void* expected = model.empty() ? nullptr : model.back();
            ASSERT_EQ(way.pop(this->slot), expected);
            if (expected == nullptr) continue;
            memset(expected, 0xee, g.block_size);
            model.pop_back();
            out.push_back(expected);
        } else if (!out.empty()) {
            std::swap(out.back(), out[random() % out.size()]);
            way.push(this->span, out.back());
            model.push_back(out.back());
            out.pop_back();
        }
        ASSERT_EQ(this->span->local().count(), model.size());
    }
}

TEST_F(OwnedSpanTest, cas_pop_and_push_leave_the_words_that_the_transitions_say) {
    open(kSmall);
    for (int i = 0; i < 10; i++) {
        LocalWord word = span->local();
        uint32_t link = span->link_behind(word);
        EXPECT_EQ(link, word.head() + 48);
        void* block = pop();
        EXPECT_EQ(Span::offset_of(block), word.head_offset());
        EXPECT_EQ(span->local().raw(), word.popped(link).raw());
    }
    void* block = reinterpret_cast<void*>(span->block_at(first_block_offset(shape().group, span->index())));
    LocalWord word = span->local();
    LocalWord left = cas_push(span, block);
    EXPECT_EQ(left.raw(), word.pushed(Span::offset_of(block)).raw());
    EXPECT_EQ(span->local().raw(), left.raw());
    EXPECT_EQ(span->link_behind(left), word.head());
}

// The span leaves the slot and hot between a pop's look at the slot and its CAS: the word's version has advanced.
TEST_F(OwnedSpanTest, a_pop_from_a_span_that_left_hot_meanwhile_fails) {
    open(kSmall);
    LocalWord seen = span->local();
    uint32_t link = span->link_behind(seen);
    slot.store(nullptr, relaxed);
    span->leave_hot(kMe);
    EXPECT_FALSE(span->local_word().compare_exchange(seen, seen.popped(link), acq_rel));
}

#if RTSPAN_HAS_RSEQ
// Both ways make of the same word the same word. A sequence that was aborted changed nothing and is tried again.
TEST_F(OwnedSpanTest, sequences_leave_the_words_that_the_transitions_say) {
    uint64_t* rseq_cs = rseq_cs_of_thread();
    if (rseq_cs == nullptr) GTEST_SKIP() << "this thread has no restartable sequences";
    open(kSmall);
    std::vector<void*> out;
    std::mt19937 random(1);
    int pops = 0, pushes = 0;
    for (int i = 0; i < 20'000; i++) {
        LocalWord word = span->local();
        if (random() % 100 < (i / 4000 % 2 == 0 ? 70u : 30u)) {
            uint32_t link = word.count() == 0 ? 0 : span->link_behind(word);
            bool untouched = word.is_bump();
            void* block = nullptr;
            if (random() % 4 == 0) {
                block = cas_pop(slot);
            } else {
                void* by_the_wrong_one = untouched ? rseq_pop(rseq_cs, &slot) : rseq_pop_untouched(rseq_cs, &slot);
                ASSERT_EQ(by_the_wrong_one, nullptr);
                block = untouched ? rseq_pop_untouched(rseq_cs, &slot) : rseq_pop(rseq_cs, &slot);
            }
            if (block == nullptr) {
                ASSERT_EQ(span->local().raw(), word.raw());
                continue;
            }
            ASSERT_TRUE(span->checks().begins_block(reinterpret_cast<uintptr_t>(block)));
            ASSERT_FALSE(span->checks().is_marked(reinterpret_cast<uintptr_t>(block)));
            ASSERT_EQ(reinterpret_cast<uintptr_t>(block), span->block_at(word.head_offset()));
            ASSERT_EQ(span->local().raw(), word.popped(link).raw());
            out.push_back(block);
            pops++;
        } else if (!out.empty()) {
            void* block = out.back();
            LocalWord left = random() % 4 == 0 ? cas_push(span, block) : rseq_push(rseq_cs, span, block);
            if (left.raw() == kAborted) {
                ASSERT_EQ(span->local().raw(), word.raw());
                continue;
            }
            ASSERT_EQ(left.raw(), word.pushed(Span::offset_of(block)).raw());
            ASSERT_EQ(span->local().raw(), left.raw());
            ASSERT_EQ(span->link_behind(left), word.head());
            ASSERT_TRUE(span->checks().is_marked(reinterpret_cast<uintptr_t>(block)));
            // Twice: not without suspicion, and nothing changes.
            ASSERT_EQ(rseq_push(rseq_cs, span, block).raw(), kSuspected);
            ASSERT_EQ(rseq_push(rseq_cs, span, static_cast<char*>(block) + 16).raw(), kSuspected);
            ASSERT_EQ(span->local().raw(), left.raw());
            out.pop_back();
            pushes++;
        }
    }
    EXPECT_GT(pops, 1000);
    EXPECT_GT(pushes, 1000);
}

TEST_F(OwnedSpanTest, each_thread_has_a_sequence_word_of_its_own) {
    uint64_t* words[2] = {};
    run_threads(2, [&](int thread) { words[thread] = rseq_cs_of_thread(); });
    if (words[0] == nullptr) GTEST_SKIP() << "threads have no restartable sequences";
    EXPECT_NE(words[0], words[1]);
    EXPECT_NE(words[0], rseq_cs_of_thread());
    EXPECT_EQ(reinterpret_cast<uintptr_t>(words[0]) % 8, 0u);
}
#endif

#if RTSPAN_CAN_STEP
// At every instruction of a pop or a push a handler pops two blocks, and pushes one that it had and the first: without
// a version, the word would be what the interrupted operation has seen, but the link another. (A sequence is aborted
// whenever it is stopped, so its caller takes the other way then.)
TYPED_TEST(LocalList, a_handler_at_every_instruction_loses_and_doubles_nothing) {
    for (bool pushes : {false, true}) {
        this->span = OwnedSpanTest::fresh_span();
        bool stopped = true;
        for (uint64_t n = 1; stopped; n++) {
            this->open(class_of_size(160 << 10));
            TypeParam way;
            // Linked through the blocks, rather than by the bump mark.
            std::vector<void*> out = this->pop_all();
            size_t capacity = out.size();
            for (int i = 0; i < 6; i++) {
                cas_push(this->span, out.back());
                out.pop_back();
            }
            out.reserve(64);
            void *mine = nullptr, *theirs = nullptr;
            if (pushes) mine = way.pop(this->slot);
            void* extra = out.back();
            out.pop_back();
            auto handler = [&] {
                void* first = way.pop(this->slot);
                theirs = way.pop(this->slot);
                way.push(this->span, extra);
                way.push(this->span, first);
            };
            auto body = [&] {
                if (pushes) {
                    way.push(this->span, mine);
                } else {
                    mine = way.pop(this->slot);
                }
            };
            stopped = Stepper::run(n, body, handler);
            if (!stopped) handler();
            if (!pushes) out.push_back(mine);
            out.push_back(theirs);
            for (void* block : this->pop_all()) out.push_back(block);
            ASSERT_EQ(out.size(), capacity) << "instruction " << n;
            ASSERT_EQ(std::set<void*>(out.begin(), out.end()).size(), capacity) << "instruction " << n;
            Anchor seen = this->span->anchor();
            ASSERT_TRUE(this->span->try_transition(seen, seen.emptied(SpanState::free)));
        }
    }
}
#endif

// Signals hit a thread that pops and pushes; the handler, nested too, does so on the same span. Whoever pops a block
// must be the only one to have it; at the end all are there. With `refills`, another thread frees some of the blocks
// remotely, and both the interrupted code and the handler take the remote list when the local one is empty.
class Storm {
  public:
    static constexpr int kSignal = SIGUSR1;
    static constexpr uint32_t kStash = 8;
    static constexpr int kDepth = 3;

    Storm(Span* span, Atomic<Span*>& slot, OwnerId me) : span_(span), slot_(slot), me_(me) {
        const Geometry& g = geometry(span->size_class());
        first_ = span->memory() + first_block_offset(g.group, span->index());
        size_ = g.block_size;
        capacity_ = g.capacity;
    }

    template <class Way>
    void run(uint64_t wanted_signals, bool refills) {
        running = this;
        handler_body_ = [](Storm& storm) { storm.in_handler(Way()); };
        struct sigaction action = {}, before = {};
        action.sa_handler = [](int) { running->handler(); };
        action.sa_flags = SA_NODEFER | SA_RESTART;
        ASSERT_EQ(sigaction(kSignal, &action, &before), 0);
        pthread_t target = pthread_self();
        std::atomic<bool> done{false};
        // Each signal waits until the one before is in its handler, and until few are nested: however slow the handlers
        // are beside this thread, they do not pile up on the stack.
        std::thread sender([&] {
            for (uint64_t sent = 0; !done; sent++) {
                pthread_kill(target, kSignal);
                while (!done && (signals_.load(relaxed) <= sent || depth_.load(relaxed) > kDepth)) {
                }
                for (int i = 0; i < 300 && !done; i++) sent_pause_.fetch_add(1, relaxed);
            }
        });
        std::thread freer([&] {
            while (refills && !done) {
                void* block = handed_over_.exchange(nullptr, acq_rel);
                if (block == nullptr) {
                    std::this_thread::yield();
                } else {
                    span_->remote_push(block);
                }
            }
        });
        std::mt19937 random(1);
        std::vector<void*> mine;
        while (signals_.load(relaxed) < wanted_signals && wrong_.load(relaxed) == 0) {
            for (int i = 0; i < 100; i++) {
                bool hand_over = refills && !mine.empty() && random() % 4 == 0;
                if (random() % 2 == 0) {
                    if (void* block = pop(Way(), refills); block != nullptr) mine.push_back(block);
                } else if (hand_over) {
                    void* nothing = nullptr;
                    release_block(mine.back());
                    if (handed_over_.compare_exchange(nothing, mine.back(), acq_rel)) {
                        mine.pop_back();
                    } else {
                        hold(mine.back());
                    }
                } else if (!mine.empty()) {
                    push(Way(), mine.back());
                    mine.pop_back();
                }
            }
        }
        done = true;
        sender.join();
        freer.join();
        sigaction(kSignal, &before, nullptr);
        EXPECT_EQ(wrong_.load(relaxed), 0u) << "a block was given out twice, or is none";
        // Give everything back, then count it.
        for (void* block : mine) push(Way(), block);
        for (Atomic<void*>& cell : stash_) {
            if (void* block = cell.exchange(nullptr, relaxed); block != nullptr) push(Way(), block);
        }
        if (void* block = handed_over_.load(relaxed); block != nullptr) cas_push(span_, block);
        std::set<void*> all;
        for (int round = 0; round < 3; round++) {
            while (void* block = cas_pop(slot_)) {
                if (!all.insert(block).second) break;
            }
            span_->refill(me_);
        }
        EXPECT_EQ(all.size(), capacity_) << "blocks were lost";
        EXPECT_EQ(span_->local().count(), 0u);
        EXPECT_GT(handler_pops_.load(relaxed), 0u);
        running = nullptr;
    }

  private:
    void hold(void* block) {
        uintptr_t number = (reinterpret_cast<uintptr_t>(block) - first_) / size_;
        bool right = number < capacity_ && first_ + number * size_ == reinterpret_cast<uintptr_t>(block);
        if (!right || held_[number].exchange(1, relaxed) != 0) wrong_.fetch_add(1, relaxed);
    }
    void release_block(void* block) { held_[(reinterpret_cast<uintptr_t>(block) - first_) / size_].store(0, relaxed); }

    template <class Way>
    void* pop(Way way, bool refills) {
        void* block = way.pop(slot_);
        if (block == nullptr && refills) {
            span_->finish_take(me_);
            if (span_->local().count() == 0) span_->refill(me_);
            block = way.pop(slot_);
        }
        if (block != nullptr) hold(block);
        return block;
    }
    template <class Way>
    void push(Way way, void* block) {
        release_block(block);
        way.push(span_, block);
    }

    void handler() {
        signals_.fetch_add(1, relaxed);
        if (depth_.fetch_add(1, relaxed) < kDepth) handler_body_(*this);
        depth_.fetch_sub(1, relaxed);
    }
    // Pops two, pushes one it has kept and the first, keeps the second: the schedule that makes a CAS without a version
    // succeed wrongly, for head and count are what they were.
    template <class Way>
    void in_handler(Way way) {
        Atomic<void*>& cell = stash_[turns_.fetch_add(1, relaxed) % kStash];
        void* a = pop(way, true);
        void* b = pop(way, true);
        if (void* kept = cell.exchange(b, relaxed); kept != nullptr) push(way, kept);
        if (a != nullptr) push(way, a);
        if (b != nullptr) handler_pops_.fetch_add(1, relaxed);
    }

    static inline Storm* running = nullptr;

    Span* span_;
    Atomic<Span*>& slot_;
    OwnerId me_;
    uintptr_t first_;
    uint32_t size_, capacity_;
    void (*handler_body_)(Storm&) = nullptr;
    Atomic<uint8_t> held_[2048];
    Atomic<void*> stash_[kStash];
    Atomic<void*> handed_over_;
    Atomic<uint64_t> signals_, wrong_, turns_, handler_pops_, sent_pause_;
    Atomic<int> depth_;
};

constexpr uint64_t kSignals = 2000;

TYPED_TEST(LocalList, a_signal_storm_loses_and_doubles_nothing) {
    this->open(kSmall);
    Storm(this->span, this->slot, this->kMe).run<TypeParam>(kSignals, false);
}

// Few blocks: the list is empty most of the time.
TYPED_TEST(LocalList, a_signal_storm_over_refills_loses_and_doubles_nothing) {
    this->open(class_of_size(160 << 10));
    Storm(this->span, this->slot, this->kMe).run<TypeParam>(kSignals, true);
}

}  // namespace
}  // namespace rtspan
