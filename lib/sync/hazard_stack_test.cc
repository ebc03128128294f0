#include "sync/hazard_stack.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <numeric>
#include <random>
#include <set>
#include <vector>

#include "os/stepper_test.h"
#include "os/threads_test.h"

namespace rtspan {
namespace {

constexpr uint32_t kElements = 256;

// The elements' links, with a place to stop a popper: between its load of a link and the CAS on head.
class Links {
  public:
    class Cell {
      public:
        uint64_t load(Order order) const {
            uint64_t link = link_.load(order);
            if (hook) hook();
            return link;
        }
        void store(uint64_t link, Order order) {
            if (store_hook) store_hook();
            link_.store(link, order);
        }

      private:
        Atomic<uint64_t> link_;
    };

    static Cell& of(uint32_t index) { return cells[index]; }

    // Calls `what` once, at the calling thread's next load of a link.
    static void stop_once(std::function<void()> what) {
        hook = [what = std::move(what)] {
            auto call = what;
            hook = nullptr;
            call();
        };
    }

    static inline thread_local std::function<void()> hook;
    // As hook, but before the caller's store of a link.
    static inline thread_local std::function<void()> store_hook;
    static inline Cell cells[kElements];
};

using Stack = HazardStack<Links>;
constexpr uint32_t kNone = Stack::kNone;
constexpr uint64_t kMe = 1;

std::vector<uint32_t> drained(Stack& stack) {
    std::vector<uint32_t> elements;
    for (uint32_t index; (index = stack.pop(kMe)) != kNone && elements.size() <= kElements;) elements.push_back(index);
    return elements;
}

using Elements = std::vector<uint32_t>;

void in_another_thread(std::function<void()> what) { std::thread(std::move(what)).join(); }

TEST(HazardStack, last_in_first_out) {
    Stack stack;
    EXPECT_EQ(stack.pop(kMe), kNone);
    for (uint32_t i : {0u, 7u, 3u}) stack.push(i);
    EXPECT_EQ(stack.pop(kMe), 3u);
    stack.push(5);
    EXPECT_EQ(drained(stack), (Elements{5, 7, 0}));
}

TEST(HazardStack, agrees_with_a_vector) {
    Stack stack;
    Elements model, out(kElements);
    std::iota(out.begin(), out.end(), 0u);
    std::mt19937 random(1);
    for (int i = 0; i < 50'000; i++) {
        // Tends to grow, then to shrink, by turns.
        if (random() % 10 < (i / 500 % 2 == 0 ? 6u : 4u) && !out.empty()) {
            std::swap(out.back(), out[random() % out.size()]);
            stack.push(out.back());
            model.push_back(out.back());
            out.pop_back();
        } else if (model.empty()) {
            ASSERT_EQ(stack.pop(kMe), kNone);
        } else {
            ASSERT_EQ(stack.pop(kMe), model.back());
            out.push_back(model.back());
            model.pop_back();
        }
    }
}

// The ABA schedule: a popper has read that 0 lies on 1; then 0 and 1 are popped, and 0 comes back, on 2. Taking 0 now
// and making 1 the head would give 1 out twice. So 0 is parked with the popper, who takes what else there is.
void stopped_popper(const std::function<void(std::function<void()>)>& run_others) {
    Stack stack;
    for (uint32_t i : {3u, 2u, 1u, 0u}) stack.push(i);
    Links::stop_once([&] {
        run_others([&] {
            EXPECT_EQ(stack.pop(kMe), 0u);
            EXPECT_EQ(stack.pop(kMe), 1u);
            stack.push(0);
            EXPECT_EQ(stack.pop(kMe), 2u) << "0 is parked, not in the stack";
            stack.push(2);
        });
    });
    EXPECT_EQ(stack.pop(kMe), 2u);
    EXPECT_EQ(Links::hook, nullptr) << "the popper was stopped";
    EXPECT_EQ(drained(stack), (Elements{0, 3})) << "0 was rescued; 1 is in the others' hands";
}

TEST(HazardStack, a_stopped_popper_is_not_fooled_by_another_thread) { stopped_popper(in_another_thread); }
TEST(HazardStack, an_interrupted_popper_is_not_fooled_by_a_handler) {
    stopped_popper([](const std::function<void()>& others) { others(); });
}

// The element comes back when the stack is otherwise empty: the popper finds nothing, but what is parked is not lost.
TEST(HazardStack, what_is_parked_when_the_stack_runs_empty_is_rescued) {
    Stack stack;
    stack.push(0);
    Links::stop_once([&] {
        in_another_thread([&] {
            EXPECT_EQ(stack.pop(kMe), 0u);
            stack.push(0);
            EXPECT_EQ(stack.pop(kMe), kNone) << "parked";
        });
    });
    uint32_t popped = stack.pop(kMe);
    Elements rest = drained(stack);
    if (popped != kNone) rest.push_back(popped);
    EXPECT_EQ(rest, Elements{0});
}

// A popper that names another element now still has the first one parked: parking the second pushes the first out.
TEST(HazardStack, parking_an_element_releases_the_one_parked_before) {
    Stack stack;
    for (uint32_t i : {2u, 1u, 0u}) stack.push(i);
    Links::stop_once([&] {
        in_another_thread([&] {
            EXPECT_EQ(stack.pop(kMe), 0u);
            stack.push(0);  // parked
        });
        Links::stop_once([&] {  // the popper names 1 by now
            in_another_thread([&] {
                EXPECT_EQ(stack.pop(kMe), 1u);
                stack.push(1);  // parked in place of 0, which is nobody's hazard any more
                EXPECT_EQ(stack.pop(kMe), 0u);
                EXPECT_EQ(stack.pop(kMe), 2u);
                EXPECT_EQ(stack.pop(kMe), kNone);
                stack.push(2);
            });
        });
    });
    EXPECT_EQ(stack.pop(kMe), 2u);
    EXPECT_EQ(drained(stack), Elements{1});
}

// Two poppers name the same element: it moves from one's cell to the other's, not back to the stack too early.
TEST(HazardStack, an_element_named_twice_stays_out_until_both_are_done) {
    Stack stack;
    for (uint32_t i : {3u, 2u, 1u, 0u}) stack.push(i);
    Links::stop_once([&] {      // the first has named 0
        Links::stop_once([&] {  // so has the second
            in_another_thread([&] {
                EXPECT_EQ(stack.pop(kMe), 0u);
                stack.push(0);
            });
        });
        EXPECT_EQ(stack.pop(kMe), 1u);
        EXPECT_EQ(stack.pop(kMe), 2u) << "the first still names 0";
    });
    EXPECT_EQ(stack.pop(kMe), 3u);
    EXPECT_EQ(drained(stack), Elements{0});
}

// While one popper is stopped, the others go on with all but the one element that it names.
TEST(HazardStack, a_stopped_popper_pins_one_element_and_stops_nobody) {
    constexpr uint32_t kCount = 40;
    Stack stack;
    for (uint32_t i = 0; i < kCount; i++) stack.push(i);
    Links::stop_once([&] {
        in_another_thread([&] {
            for (int round = 0; round < 100; round++) {
                Elements out = drained(stack);
                ASSERT_EQ(out.size(), round == 0 ? kCount : kCount - 1);
                for (uint32_t index : out) stack.push(index);
            }
        });
    });
    Elements all = {stack.pop(kMe)};
    for (uint32_t index : drained(stack)) all.push_back(index);
    EXPECT_EQ(std::set<uint32_t>(all.begin(), all.end()).size(), kCount);
    EXPECT_EQ(all.size(), kCount);
}

// Handlers over handlers, each in a pop of its own: 64 have a slot, the next goes without, and is exact too.
TEST(HazardStack, more_pops_at_once_than_there_are_slots) {
    constexpr int kDeepest = 70;
    Stack stack;
    for (int round = 0; round < 3; round++) {
        for (uint32_t i = 0; i < kElements; i++) stack.push(i);
        Elements popped;
        std::function<void(int)> pop_at_depth = [&](int depth) {
            if (depth < kDeepest) Links::stop_once([&, depth] { pop_at_depth(depth + 1); });
            popped.push_back(stack.pop(kMe));
            Links::hook = nullptr;
        };
        pop_at_depth(1);
        ASSERT_EQ(popped.size(), size_t{kDeepest});
        EXPECT_EQ(popped[0], kElements - 1) << "nobody came between";
        for (uint32_t index : drained(stack)) popped.push_back(index);
        EXPECT_EQ(popped.size(), kElements);
        EXPECT_EQ(std::set<uint32_t>(popped.begin(), popped.end()).size(), kElements);
    }
}

// The ABA schedule again, for a popper that found no slot: its element comes back with another link, and lies in the
// stack, for nobody names it. The count of pushes makes the popper's CAS fail.
TEST(HazardStack, a_popper_without_a_slot_is_not_fooled) {
    constexpr int kSlots = 64;
    Stack stack;
    for (uint32_t i = 0; i < kElements; i++) stack.push(i);
    Elements out;
    std::function<void(int)> pop_at_depth = [&](int depth) {
        Links::stop_once([&, depth] {
            uint32_t named = stack.pop(kMe);
            if (depth <= kSlots) {
                out.push_back(named);
                return pop_at_depth(depth + 1);
            }
            out.push_back(stack.pop(kMe));
            stack.push(named);
        });
        out.push_back(stack.pop(kMe));
        Links::hook = nullptr;
    };
    pop_at_depth(1);
    for (uint32_t index : drained(stack)) out.push_back(index);
    EXPECT_EQ(out.size(), kElements);
    EXPECT_EQ(std::set<uint32_t>(out.begin(), out.end()).size(), kElements);
}

// A popper dies behind its look at the link: what it names is parked with it, and comes back when its slot is taken
// over, once, by however many.
void die_in_pop(Stack& stack, uint64_t who) {
    struct Dead {};
    Links::hook = [] {
        Links::hook = nullptr;
        throw Dead();
    };
    EXPECT_THROW(stack.pop(who), Dead);
}

TEST(HazardStack, the_dead_ones_slots_are_taken_over) {
    constexpr uint64_t kDead = 2, kOther = 3;
    Stack stack;
    for (uint32_t i : {2u, 1u, 0u}) stack.push(i);
    die_in_pop(stack, kDead);
    EXPECT_EQ(stack.pop(kMe), 0u);
    stack.push(0);
    EXPECT_EQ(stack.pop(kMe), 1u) << "0 is parked with the dead one";
    stack.take_over(kOther, kMe);
    EXPECT_EQ(stack.pop(kMe), 2u) << "another one's slots are not touched";
    EXPECT_EQ(stack.pop(kMe), kNone);
    stack.take_over(kDead, kMe);
    EXPECT_EQ(stack.pop(kMe), 0u);
    stack.take_over(kDead, kMe);
    EXPECT_EQ(stack.pop(kMe), kNone);
}

TEST(HazardStack, any_number_of_deaths_leaves_slots_for_the_living) {
    Stack stack;
    for (uint32_t i = 0; i < 5; i++) stack.push(i);
    for (uint64_t who = 2; who < 300; who++) {
        die_in_pop(stack, who);
        Elements out = drained(stack);
        for (uint32_t index : out) stack.push(index);
        EXPECT_EQ(drained(stack).size(), 4u) << "one is parked: the popper had a slot";
        for (uint32_t index : out) {
            if (index != 4) stack.push(index);
        }
        stack.take_over(who, kMe);
    }
}

#if RTSPAN_CAN_STEP
// Two threads, 0 and 1, that run by turns; where one has ended, the other runs on.
class Turns {
  public:
    void wait_for(int me) const {
        while (turn_ != me && !ended_[1 - me]) std::this_thread::yield();
    }
    void give_way(int me) {
        turn_ = 1 - me;
        wait_for(me);
    }
    void end(int me) { ended_[me] = true; }

  private:
    std::atomic<int> turn_{0};
    std::atomic<bool> ended_[2] = {};
};

void expect_each_once(Stack& stack, Elements in_hand, uint32_t count, uint64_t n) {
    for (uint32_t index : drained(stack)) in_hand.push_back(index);
    std::sort(in_hand.begin(), in_hand.end());
    Elements expected(count);
    std::iota(expected.begin(), expected.end(), 0u);
    ASSERT_EQ(in_hand, expected) << "stopped behind instruction " << n;
}

// The popper names 0. While the other thread pushes 0, at each instruction in turn, the popper's call ends: it must
// find what was parked, or the pusher must take it back.
TEST(HazardStackStepped, a_popper_that_ends_during_a_push) {
    bool stopped = true;
    for (uint64_t n = 1; stopped; n++) {
        Stack stack;
        for (uint32_t i : {1u, 0u}) stack.push(i);
        Turns turns;
        Elements in_hand;
        std::thread popper([&] {
            turns.wait_for(1);
            Links::stop_once([&] { turns.give_way(1); });
            in_hand.push_back(stack.pop(kMe));
            turns.end(1);
        });
        turns.give_way(0);
        EXPECT_EQ(stack.pop(kMe), 0u);
        stopped = Stepper::run(
            n, [&] { stack.push(0); }, [&] { turns.give_way(0); });
        turns.end(0);
        popper.join();
        expect_each_once(stack, in_hand, 2, n);
    }
}

// As above, but another element is parked with the popper already, and the popper goes on to a third one: the pusher
// takes its own back, and owes the stack the one that it has displaced.
TEST(HazardStackStepped, a_popper_that_goes_on_during_a_push_while_it_has_another_element_parked) {
    bool stopped = true;
    for (uint64_t n = 1; stopped; n++) {
        Stack stack;
        for (uint32_t i : {3u, 2u, 1u, 0u}) stack.push(i);
        Turns turns;
        Elements in_hand;
        std::thread popper([&] {
            turns.wait_for(1);
            Links::hook = [&] { turns.give_way(1); };
            in_hand.push_back(stack.pop(kMe));
            Links::hook = nullptr;
            turns.end(1);
        });
        turns.give_way(0);  // it names 0
        EXPECT_EQ(stack.pop(kMe), 0u);
        stack.push(0);
        turns.give_way(0);  // it names 1, and 0 is parked
        EXPECT_EQ(stack.pop(kMe), 1u);
        stopped = Stepper::run(
            n, [&] { stack.push(1); }, [&] { turns.give_way(0); });
        turns.end(0);
        popper.join();
        expect_each_once(stack, in_hand, 4, n);
    }
}

// The popper is stopped at each instruction in turn. The other thread pops 0 and 1, and stops in its push of 0, behind
// its look at the names; the popper goes on until it has read a link; the push is done; the popper goes on.
TEST(HazardStackStepped, a_name_that_comes_too_late) {
    bool stopped = true;
    for (uint64_t n = 1; stopped; n++) {
        Stack stack;
        for (uint32_t i : {3u, 2u, 1u, 0u}) stack.push(i);
        Turns turns;
        Elements in_hand, others;
        std::thread other([&] {
            turns.wait_for(1);
            uint32_t back = stack.pop(kMe);
            others.push_back(stack.pop(kMe));
            Links::store_hook = [&] {
                Links::store_hook = nullptr;
                turns.give_way(1);
            };
            stack.push(back);
            Links::store_hook = nullptr;
            turns.end(1);
        });
        bool has_begun = false;
        auto body = [&] {
            Links::hook = [&] {
                if (!has_begun) return;
                Stepper::set_trap_flag(false);
                turns.give_way(0);
            };
            uint32_t index = stack.pop(kMe);
            Links::hook = nullptr;
            in_hand.push_back(index);
        };
        stopped = Stepper::run(n, body, [&] {
            has_begun = true;
            turns.give_way(0);
        });
        turns.end(0);
        other.join();
        in_hand.insert(in_hand.end(), others.begin(), others.end());
        expect_each_once(stack, in_hand, 4, n);
    }
}
#endif

// Threads pop and push with few elements, so that the same ones come back all the time. Nobody else may have what one
// popped; at the end all are there. `kStops`: poppers give way between link and CAS, which makes ABA schedules common.
void exact_accounting(uint32_t elements, bool stops) {
    constexpr int kThreads = 4, kRounds = 100'000;
    Stack stack;
    std::atomic<int> holders[kElements] = {};
    uint64_t contents[kElements] = {};  // written by who has the element: ThreadSanitizer sees it handed over
    for (uint32_t i = 0; i < elements; i++) stack.push(i);
    std::atomic<int> twice{0};
    std::atomic<uint64_t> pops{0};
    run_threads(kThreads, [&](int thread) {
        std::mt19937 random(static_cast<unsigned>(thread));
        Elements mine;
        for (int i = 0; i < kRounds; i++) {
            if (stops && random() % 16 == 0) {
                Links::hook = [] { std::this_thread::yield(); };
            }
            if (random() % 2 == 0) {
                uint32_t index = stack.pop(kMe);
                if (index != kNone) {
                    twice += holders[index].fetch_add(1) != 0;
                    contents[index]++;
                    mine.push_back(index);
                    pops++;
                }
            } else if (!mine.empty()) {
                std::swap(mine.back(), mine[random() % mine.size()]);
                holders[mine.back()].fetch_sub(1, std::memory_order_relaxed);
                stack.push(mine.back());
                mine.pop_back();
            }
            Links::hook = nullptr;
        }
        for (uint32_t index : mine) {
            holders[index].fetch_sub(1, std::memory_order_relaxed);
            stack.push(index);
        }
    });
    EXPECT_EQ(twice.load(), 0);
    EXPECT_GT(pops.load(), uint64_t{elements});
    Elements all = drained(stack);
    EXPECT_EQ(all.size(), elements);
    EXPECT_EQ(std::set<uint32_t>(all.begin(), all.end()).size(), elements);
    EXPECT_EQ(std::accumulate(contents, contents + kElements, uint64_t{0}), pops.load());
}

TEST(HazardStackConcurrent, exact_with_two_elements) { exact_accounting(2, false); }
TEST(HazardStackConcurrent, exact_with_four_elements_and_slow_poppers) { exact_accounting(4, true); }
TEST(HazardStackConcurrent, exact_with_many_elements) { exact_accounting(kElements, false); }
TEST(HazardStackConcurrent, exact_with_many_elements_and_slow_poppers) { exact_accounting(kElements, true); }

}  // namespace
}  // namespace rtspan
