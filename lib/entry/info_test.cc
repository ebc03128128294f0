#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include <cstring>
#include <map>
#include <regex>
#include <string>
#include <vector>

#include "arena/arena.h"
#include "pool/fresh_process_test.h"
#include "rtspan/rtspan.h"

namespace {

using rtspan::test::in_fresh_process;

constexpr size_t kMiB = size_t{1} << 20;

TEST(Mallinfo, IsZeroBeforeTheFirstCall) {
    in_fresh_process([] {
        struct mallinfo2 info = rtspan_mallinfo2();
        struct mallinfo2 zero = {};
        EXPECT_EQ(memcmp(&info, &zero, sizeof info), 0);
    });
}

TEST(Mallinfo, CountsWhatIsInUse) {
    in_fresh_process([] {
        void* small = rtspan_malloc(100);
        struct mallinfo2 info = rtspan_mallinfo2();
        EXPECT_EQ(info.uordblks, 112u);
        EXPECT_EQ(info.hblks, 0u);
        size_t real = info.arena;
        EXPECT_GT(real, 60u << 10);
        EXPECT_LE(real, 64u << 10);
        EXPECT_EQ(info.uordblks + info.fordblks, real);
        void* large = rtspan_malloc(3 * kMiB);
        info = rtspan_mallinfo2();
        EXPECT_EQ(info.uordblks, 112 + 3 * kMiB);
        EXPECT_EQ(info.hblks, 1u);
        EXPECT_EQ(info.hblkhd, 3 * kMiB);
        EXPECT_EQ(info.ordblks, 0u);
        rtspan_free(large);
        info = rtspan_mallinfo2();
        EXPECT_EQ(info.uordblks, 112u);
        EXPECT_EQ(info.hblks, 0u);
        EXPECT_EQ(info.ordblks, 1u);
        EXPECT_EQ(info.keepcost, 3 * kMiB);
        EXPECT_EQ(info.arena, real + 3 * kMiB);
        EXPECT_EQ(rtspan_malloc_trim(0), 1);
        EXPECT_EQ(rtspan_mallinfo2().keepcost, 0u);
        rtspan_free(small);
        EXPECT_EQ(rtspan_mallinfo2().uordblks, 0u);
    });
}

// An aligned object begins inside its run; what it leaves behind when freed counts all the same.
TEST(Mallinfo, CountsWhatAnAlignedObjectLeaves) {
    in_fresh_process([] {
        size_t kept = 0;
        for (int i = 0; i < 2; i++) {
            void* block = rtspan_aligned_alloc(4 * kMiB, 3 * kMiB);
            EXPECT_EQ(rtspan_mallinfo2().hblkhd, kept + 3 * kMiB);
            memset(block, 1, 3 * kMiB);
            rtspan_free(block);
            EXPECT_GE(rtspan_mallinfo2().keepcost, 3 * kMiB);
            EXPECT_EQ(rtspan_mallinfo2().uordblks, kept);
            EXPECT_EQ(rtspan_malloc_trim(0), 1);
            // One span more in use: the next run begins at another alignment.
            EXPECT_NE(rtspan_aligned_alloc(4 * kMiB, 3 * kMiB), nullptr);
            EXPECT_NE(rtspan_malloc(2 * kMiB), nullptr);
            kept += 5 * kMiB;
        }
    });
}

TEST(Mallinfo, FollowsManyBlocks) {
    in_fresh_process([] {
        std::vector<void*> blocks;
        size_t used = 0;
        for (size_t i = 0; i < 5000; i++) {
            blocks.push_back(rtspan_malloc(i * 13 % 6000));
            used += rtspan_malloc_usable_size(blocks.back());
        }
        EXPECT_EQ(rtspan_mallinfo2().uordblks, used);
        for (size_t i = 0; i < 5000; i += 2) {
            used -= rtspan_malloc_usable_size(blocks[i]);
            rtspan_free(blocks[i]);
        }
        EXPECT_EQ(rtspan_mallinfo2().uordblks, used);
        for (size_t i = 1; i < 5000; i += 2) rtspan_free(blocks[i]);
        EXPECT_EQ(rtspan_mallinfo2().uordblks, 0u);
        EXPECT_GT(rtspan_mallinfo2().ordblks, 10u);
    });
}

std::string stderr_of(void (*function)()) {
    char name[] = "/tmp/rtspan_info_test.XXXXXX";
    int file = mkstemp(name);
    unlink(name);
    int saved = dup(2);
    dup2(file, 2);
    function();
    dup2(saved, 2);
    close(saved);
    std::string text(static_cast<size_t>(lseek(file, 0, SEEK_END)), 0);
    EXPECT_EQ(pread(file, text.data(), text.size(), 0), static_cast<ssize_t>(text.size()));
    close(file);
    return text;
}

TEST(MallocStats, WritesATable) {
    in_fresh_process([] {
        void* block = rtspan_malloc(100);
        void* large = rtspan_malloc(3 * kMiB);
        errno = 7;
        std::string text = stderr_of(rtspan_malloc_stats);
        EXPECT_EQ(errno, 7);
        // Each line whole: rtspan: NAME  NUMBER
        std::regex line("rtspan: ([a-zA-Z ,]*[a-zA-Z]) +([0-9]+)\n");
        std::map<std::string, unsigned long> values;
        size_t matched = 0;
        for (std::sregex_iterator i(text.begin(), text.end(), line), end; i != end; ++i) {
            values[(*i)[1]] = std::stoul((*i)[2]);
            matched += static_cast<size_t>(i->length());
        }
        EXPECT_EQ(matched, text.size()) << text;
        EXPECT_EQ(values.size(), 11u) << text;
        EXPECT_EQ(values["arena, bytes of address space"], size_t{4} << 30);
        EXPECT_EQ(values["blocks in use"], 1u);
        EXPECT_EQ(values["blocks in use, bytes"], 112u);
        EXPECT_EQ(values["large objects in use, bytes"], 3 * kMiB);
        EXPECT_EQ(values["threads with a LAB at most"], 1u);
        EXPECT_EQ(values["virtual spans ever used"], rtspan::the_arena.frontier());
        rtspan_free(block);
        rtspan_free(large);
    });
}

std::string info_text() {
    char* text = nullptr;
    size_t length = 0;
    FILE* stream = open_memstream(&text, &length);
    EXPECT_EQ(rtspan_malloc_info(0, stream), 0);
    fclose(stream);
    std::string result(text, length);
    free(text);
    return result;
}

// Elements nest and close, attributes are quoted: enough of XML for what malloc_info writes.
bool is_well_formed(const std::string& text) {
    static const std::regex tag(R"(\s*<(/?)([a-z]+)((?: [a-z]+="[^"<&]*")*)(/?)>\s*)");
    std::vector<std::string> open;
    size_t roots = 0;
    auto at = text.cbegin();
    for (std::smatch match; at != text.cend(); at = match[0].second) {
        if (!std::regex_search(at, text.cend(), match, tag, std::regex_constants::match_continuous)) return false;
        if (match[1].length() != 0) {
            if (open.empty() || open.back() != match[2]) return false;
            open.pop_back();
            continue;
        }
        roots += open.empty();
        if (match[4].length() == 0) open.push_back(match[2]);
    }
    return open.empty() && roots == 1;
}

TEST(MallocInfo, IsXml) {
    ASSERT_FALSE(is_well_formed("<malloc><arena></malloc>"));
    ASSERT_FALSE(is_well_formed("<malloc a=\"1/></malloc>"));
    in_fresh_process([] {
        EXPECT_TRUE(is_well_formed(info_text())) << "before the first call";
        void* block = rtspan_malloc(100);
        std::string text = info_text();
        EXPECT_TRUE(is_well_formed(text)) << text;
        EXPECT_EQ(text.rfind("<malloc version=\"rtspan-1\">", 0), 0u);
        EXPECT_NE(text.find("<blocks count=\"1\" bytes=\"112\"/>"), std::string::npos) << text;
        EXPECT_NE(text.find("<arena bytes=\"4294967296\""), std::string::npos) << text;
        rtspan_free(block);
    });
}

TEST(MallocInfo, RefusesWhatItDoesNotKnow) {
    in_fresh_process([] {
        errno = 0;
        EXPECT_EQ(rtspan_malloc_info(1, stdout), -1);
        EXPECT_EQ(errno, EINVAL);
        errno = 0;
        EXPECT_EQ(rtspan_malloc_info(0, nullptr), -1);
        EXPECT_EQ(errno, EINVAL);
        FILE* full = fopen("/dev/full", "w");
        ASSERT_NE(full, nullptr);
        setvbuf(full, nullptr, _IONBF, 0);
        EXPECT_EQ(rtspan_malloc_info(0, full), -1);
        fclose(full);
    });
}

}  // namespace
