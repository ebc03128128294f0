#include "pool/span_pool.h"

#include <sched.h>
#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <set>
#include <thread>
#include <vector>

#include "os/system_call.h"
#include "pool/fresh_process_test.h"

namespace rtspan {
namespace {

using test::in_fresh_process;
using test::kThreadSanitizer;

constexpr size_t k64K = size_t{64} << 10;
constexpr OwnerId kMe(1, 1);

char* memory_of(Span* span) { return reinterpret_cast<char*>(span->memory()); }

bool reads_zero(Span* span, size_t bytes) {
    const char* memory = memory_of(span);
    return std::all_of(memory, memory + bytes, [](char c) { return c == 0; });
}

unsigned resident_pages(Span* span, size_t bytes) {
    std::vector<unsigned char> pages(bytes / os::kPageSize);
    EXPECT_EQ(mincore(memory_of(span), bytes, pages.data()), 0);
    return static_cast<unsigned>(std::count_if(pages.begin(), pages.end(), [](unsigned char p) { return p & 1; }));
}

// Makes a span that was never opened look like one whose blocks were used and freed: `bytes` of it written.
void use_up(Span* span, size_t bytes) {
    memset(memory_of(span), 0x5a, bytes);
    span->set_dirty_bytes(bytes);
    Anchor seen = span->anchor();
    ASSERT_TRUE(span->try_transition(seen, seen.emptied(SpanState::free)));
}

TEST(Kind, NumbersEachKindOnce) {
    std::set<unsigned> numbers;
    for (unsigned g = 0; g < kGroups; g++) {
        numbers.insert(Kind::group(g).number());
        EXPECT_EQ(Kind::group(g).order(), 0u);
    }
    for (unsigned order = 0; order <= kMaxRunOrder; order++) {
        numbers.insert(Kind::run(order).number());
        EXPECT_EQ(Kind::run(order).order(), order);
        EXPECT_EQ(Kind::at(Kind::run(order).number()).order(), order);
    }
    EXPECT_EQ(numbers.size(), Kind::kCount);
    EXPECT_EQ(*numbers.rbegin(), Kind::kCount - 1);
}

TEST(SpanPool, FreshSpansAreDistinctAlignedAndZero) {
    in_fresh_process([] {
        ASSERT_TRUE(the_arena.open());
        Span* first = the_pool.get(Kind::group(0), kMe);
        Span* second = the_pool.get(Kind::group(0), kMe);
        ASSERT_NE(first, nullptr);
        ASSERT_NE(second, nullptr);
        EXPECT_NE(first, second);
        for (Span* span : {first, second}) {
            EXPECT_EQ(span->memory() % kVirtualSpanSize, 0u);
            EXPECT_TRUE(span->anchor().is(SpanState::expected));
            EXPECT_EQ(span->dirty_bytes(), 0u);
            EXPECT_TRUE(reads_zero(span, kVirtualSpanSize));
            EXPECT_LT(span->index(), the_arena.frontier());
        }
    });
}

TEST(SpanPool, GivesWhatWasPutBeforeAnythingFresh) {
    in_fresh_process([] {
        ASSERT_TRUE(the_arena.open());
        for (unsigned number = 0; number < Kind::kCount; number++) {
            if (Kind::at(number).order() > 3) continue;
            Span* span = the_pool.get(Kind::at(number), kMe);
            uint64_t frontier = the_arena.frontier();
            for (uint64_t dirty : {uint64_t{0}, uint64_t{4096}}) {
                span->set_dirty_bytes(dirty);
                the_pool.put(span, Kind::at(number));
                EXPECT_EQ(the_pool.get(Kind::at(number), kMe), span) << "kind " << number;
            }
            EXPECT_EQ(the_arena.frontier(), frontier);
        }
    });
}

TEST(SpanPool, KeepsKindsApart) {
    in_fresh_process([] {
        ASSERT_TRUE(the_arena.open());
        constexpr Kind kinds[] = {Kind::group(0), Kind::group(1), Kind::group(2),
                                  Kind::group(3), Kind::run(0),   Kind::run(1)};
        std::vector<Span*> spans;
        for (Kind kind : kinds) spans.push_back(the_pool.get(kind, kMe));
        for (size_t i = 0; i < spans.size(); i++) the_pool.put(spans[i], kinds[i]);
        for (size_t i = spans.size(); i-- > 0;) EXPECT_EQ(the_pool.get(kinds[i], kMe), spans[i]);
        for (size_t i = 0; i < spans.size(); i++) the_pool.put(spans[i], kinds[i]);
        for (Kind kind : {Kind::group(1), Kind::run(0)}) {
            EXPECT_NE(the_pool.get(kind, kMe), nullptr);
            Span* other = the_pool.get(kind, kMe);
            EXPECT_EQ(std::count(spans.begin(), spans.end(), other), 0) << "another kind's span";
        }
    });
}

TEST(SpanPool, GivesDirtySpansBeforeCleanOnes) {
    in_fresh_process([] {
        ASSERT_TRUE(the_arena.open());
        Span* clean = the_pool.get(Kind::group(1), kMe);
        Span* dirty = the_pool.get(Kind::group(1), kMe);
        dirty->set_dirty_bytes(4096);
        for (bool dirty_first : {false, true}) {
            the_pool.put(dirty_first ? dirty : clean, Kind::group(1));
            the_pool.put(dirty_first ? clean : dirty, Kind::group(1));
            EXPECT_EQ(the_pool.get(Kind::group(1), kMe), dirty);
            EXPECT_EQ(the_pool.get(Kind::group(1), kMe), clean);
        }
    });
}

TEST(SpanPool, RunsAreAdjacentSpans) {
    in_fresh_process([] {
        ASSERT_TRUE(the_arena.open());
        for (unsigned order = 0; order <= 5; order++) {
            uint64_t before = the_arena.frontier();
            Span* run = the_pool.get(Kind::run(order), kMe);
            ASSERT_NE(run, nullptr);
            EXPECT_EQ(run->index(), before);
            EXPECT_EQ(the_arena.frontier(), before + (uint64_t{1} << order));
            memory_of(run)[(kVirtualSpanSize << order) - 1] = 1;
        }
    });
}

TEST(SpanPool, FindsSpansThatWerePutOnOtherProcessors) {
    in_fresh_process([] {
        ASSERT_TRUE(the_arena.open());
        Span* span = the_pool.get(Kind::group(0), kMe);
        the_pool.put(span, Kind::group(0));
        EXPECT_EQ(the_pool.get(Kind::group(0), kMe), span);
        cpu_set_t usable;
        ASSERT_EQ(sched_getaffinity(0, sizeof usable, &usable), 0);
        std::vector<int> processors;
        for (int p = 0; p < CPU_SETSIZE && processors.size() < 8; p++) {
            if (CPU_ISSET(p, &usable)) processors.push_back(p);
        }
        auto go_to = [](int processor) {
            cpu_set_t one;
            CPU_ZERO(&one);
            CPU_SET(processor, &one);
            ASSERT_EQ(sched_setaffinity(0, sizeof one, &one), 0);
        };
        for (int from : processors) {
            for (int to : processors) {
                go_to(from);
                the_pool.put(span, Kind::group(0));
                go_to(to);
                ASSERT_EQ(the_pool.get(Kind::group(0), kMe), span) << from << " to " << to;
            }
        }
    });
}

TEST(SpanPool, TrimGivesPagesBack) {
    in_fresh_process([] {
        ASSERT_TRUE(the_arena.open());
        EXPECT_FALSE(the_pool.trim(0, kMe)) << "there was nothing";
        Span* span = the_pool.get(Kind::group(0), kMe);
        Span* run = the_pool.get(Kind::run(2), kMe);
        use_up(span, k64K);
        use_up(run, 4 * kVirtualSpanSize);
        the_pool.put(span, Kind::group(0));
        the_pool.put(run, Kind::run(2));
        EXPECT_EQ(resident_pages(run, 4 * kVirtualSpanSize), 4 * kVirtualSpanSize / os::kPageSize);
        EXPECT_TRUE(the_pool.trim(0, kMe));
        EXPECT_EQ(resident_pages(span, k64K), 0u);
        EXPECT_EQ(resident_pages(run, 4 * kVirtualSpanSize), 0u);
        EXPECT_FALSE(the_pool.trim(0, kMe)) << "nothing was left";
        EXPECT_EQ(the_pool.get(Kind::group(0), kMe), span);
        EXPECT_EQ(the_pool.get(Kind::run(2), kMe), run);
        EXPECT_EQ(span->dirty_bytes(), 0u);
        EXPECT_EQ(run->dirty_bytes(), 0u);
        EXPECT_TRUE(reads_zero(span, k64K) && reads_zero(run, 4 * kVirtualSpanSize));
    });
}

TEST(SpanPool, TrimKeepsWhatItIsToldTo) {
    in_fresh_process([] {
        ASSERT_TRUE(the_arena.open());
        std::vector<Span*> spans;
        for (int i = 0; i < 8; i++) spans.push_back(the_pool.get(Kind::group(0), kMe));
        for (Span* span : spans) use_up(span, k64K), the_pool.put(span, Kind::group(0));
        EXPECT_FALSE(the_pool.trim(8 * k64K, kMe));
        EXPECT_TRUE(the_pool.trim(3 * k64K, kMe));
        uint64_t left = 0;
        for (Span* span : spans) left += span->dirty_bytes();
        EXPECT_EQ(left, 3 * k64K);
        for (Span* span : spans) EXPECT_EQ(reads_zero(span, k64K), span->dirty_bytes() == 0);
        EXPECT_TRUE(the_pool.trim(0, kMe));
        for (Span* span : spans) EXPECT_TRUE(reads_zero(span, k64K));
    });
}

// Seven spans may be had, one is the table's.
TEST(SpanPool, ExhaustedArenaGivesNullAndThenWhatIsPut) {
    in_fresh_process(
        [] {
            ASSERT_TRUE(the_arena.open());
            std::set<Span*> spans;
            while (Span* span = the_pool.get(Kind::group(2), kMe)) ASSERT_TRUE(spans.insert(span).second);
            EXPECT_EQ(spans.size(), 7u);
            EXPECT_EQ(the_pool.get(Kind::run(0), kMe), nullptr);
            the_pool.put(*spans.begin(), Kind::group(2));
            EXPECT_EQ(the_pool.get(Kind::run(1), kMe), nullptr);
            // A span of any group serves every group and a run of one span.
            for (Kind kind : {Kind::group(0), Kind::group(3), Kind::run(0), Kind::group(1)}) {
                EXPECT_EQ(the_pool.get(kind, kMe), *spans.begin());
                EXPECT_EQ(the_pool.get(kind, kMe), nullptr);
                the_pool.put(*spans.begin(), kind);
            }
        },
        "16M");
}

TEST(SpanPool, ExhaustedArenaSplitsLongerRuns) {
    in_fresh_process(
        [] {
            ASSERT_TRUE(the_arena.open());
            Span* run = the_pool.get(Kind::run(2), kMe);
            while (the_pool.get(Kind::run(0), kMe) != nullptr) {
            }
            run->set_dirty_bytes(5 << 20);
            the_pool.put(run, Kind::run(2));
            EXPECT_EQ(the_pool.get(Kind::run(3), kMe), nullptr);
            std::array<Span*, 3> parts = {the_pool.get(Kind::group(0), kMe), the_pool.get(Kind::run(1), kMe),
                                          the_pool.get(Kind::group(3), kMe)};
            EXPECT_EQ(the_pool.get(Kind::run(0), kMe), nullptr);
            std::set<uint32_t> seen;
            for (Span* part : parts) {
                ASSERT_NE(part, nullptr);
                uint32_t length = part == parts[1] ? 2 : 1;
                for (uint32_t i = 0; i < length; i++) EXPECT_TRUE(seen.insert(part->index() + i).second);
                // Each part knows which of its bytes are among the first 5 MiB of the run.
                uint64_t first = (part->index() - run->index()) * kVirtualSpanSize;
                uint64_t dirty = first < 5 << 20 ? std::min<uint64_t>((5 << 20) - first, length * kVirtualSpanSize) : 0;
                EXPECT_EQ(part->dirty_bytes(), dirty) << "at " << part->index() - run->index();
            }
            EXPECT_EQ(*seen.begin(), run->index());
            EXPECT_EQ(*seen.rbegin(), run->index() + 3);
        },
        "16M");
}

// The dirty bytes of spans that were never opened themselves: halves of a run, the head of an aligned object's run.
TEST(SpanPool, TrimFindsDirtySpansThatWereNeverOpened) {
    in_fresh_process([] {
        ASSERT_TRUE(the_arena.open());
        Span* span = the_pool.get(Kind::run(1), kMe);
        memset(memory_of(span), 1, k64K);
        span->set_dirty_bytes(k64K);
        the_pool.put(span, Kind::run(1));
        EXPECT_TRUE(the_pool.trim(0, kMe));
        EXPECT_TRUE(reads_zero(span, k64K));
    });
}

// Threads take and put spans of a few kinds; nobody has what another one has, and none is lost.
TEST(SpanPool, ConcurrentCallersHaveEachSpanAlone) {
    in_fresh_process([] {
        ASSERT_TRUE(the_arena.open());
        constexpr int kThreads = 4;
        constexpr unsigned kKinds = 3;
        const int rounds = kThreadSanitizer ? 4000 : 20000;
        static std::array<std::atomic<int>, 512> holders;
        std::atomic<int> faults = 0;
        auto use = [&](unsigned seed) {
            std::vector<std::pair<Span*, Kind>> held;
            for (int i = 0; i < rounds; i++) {
                seed = seed * 1103515245 + 12345;
                Kind kind = Kind::group((seed >> 16 & 0xff) % kKinds);
                if (held.size() < 3 && (seed >> 28 & 1) != 0) {
                    Span* span = the_pool.get(kind, kMe);
                    if (span == nullptr || span->index() >= holders.size() || holders[span->index()]++ != 0) {
                        faults++;
                        return;
                    }
                    held.emplace_back(span, kind);
                } else if (!held.empty()) {
                    auto [span, kind_held] = held.back();
                    held.pop_back();
                    if (holders[span->index()]-- != 1) faults++;
                    span->set_dirty_bytes(seed >> 20 & 1);
                    the_pool.put(span, kind_held);
                }
            }
            for (auto [span, kind] : held) holders[span->index()]--, the_pool.put(span, kind);
        };
        std::vector<std::thread> threads;
        for (unsigned t = 0; t < kThreads; t++) threads.emplace_back(use, t + 1);
        for (std::thread& thread : threads) thread.join();
        EXPECT_EQ(faults, 0);
        uint64_t first = (the_arena.spans() * kDescriptorSize + kVirtualSpanSize - 1) / kVirtualSpanSize;
        uint64_t frontier = the_arena.frontier();
        std::set<Span*> there;
        for (unsigned g = 0; g < kKinds; g++) {
            while (the_arena.frontier() == frontier) {
                Span* span = the_pool.get(Kind::group(g), kMe);
                bool was_there = the_arena.frontier() == frontier;
                EXPECT_TRUE(!was_there || there.insert(span).second);
            }
            frontier = the_arena.frontier();
        }
        // What the last loop took fresh, one for each kind, was not among them.
        EXPECT_EQ(there.size(), frontier - kKinds - first);
    });
}

}  // namespace
}  // namespace rtspan
