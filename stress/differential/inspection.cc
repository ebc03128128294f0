#include "inspection.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "report.h"

namespace stress {

namespace {

constexpr int kSentinel = 5100;

struct Counted {
    size_t small, small_bytes, large, large_bytes;
};

void expect(const Caller& caller, const char* what, const char* name, size_t seen, size_t expected, bool fits) {
    if (fits) return;
    Line line;
    begin_failure(line, caller);
    fail(line << what << ": " << name << " is " << seen << ", in use are " << expected);
}

void compare_counted(const Caller& caller, const char* what, const Counted& counted, const Slots::Sums& sums) {
    expect(caller, what, "small blocks", counted.small, sums.small, counted.small == sums.small);
    expect(caller, what, "bytes in small blocks", counted.small_bytes, sums.small_bytes,
           counted.small_bytes == sums.small_bytes);
    expect(caller, what, "large objects", counted.large, sums.large, counted.large <= sums.large);
    const bool all = counted.large == sums.large;
    expect(caller, what, "bytes in large objects", counted.large_bytes, sums.large_bytes,
           all ? counted.large_bytes == sums.large_bytes : counted.large_bytes < sums.large_bytes);
}

void expect_errno(const Caller& caller, const char* what, int seen, int expected) {
    if (seen == expected) return;
    Line line;
    begin_failure(line, caller);
    fail(line << "errno after " << what << " is " << seen << ", expected " << expected);
}

// The number behind `name` in `text`.
size_t number_behind(const Caller& caller, const char* what, const char* text, const char* name) {
    const char* found = std::strstr(text, name);
    if (found == nullptr) {
        Line line;
        begin_failure(line, caller);
        fail(line << what << " does not say" << name);
    }
    return std::strtoull(found + std::strlen(name), nullptr, 10);
}

}  // namespace

void check_counters(const Caller& caller, const Slots& slots, bool exact) {
    errno = kSentinel;
    const struct mallinfo2 info = slots.ours().allocator().counters();
    expect_errno(caller, "mallinfo2", errno, kSentinel);
    if (!exact) return;
    const Slots::Sums sums = slots.sums();
    // It does not say how many small blocks there are.
    compare_counted(caller, "mallinfo2", {sums.small, info.uordblks - info.hblkhd, info.hblks, info.hblkhd}, sums);
}

void check_stats(const Caller& caller, const Slots& slots) {
    const int saved = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3);
    const int file = memfd_create("stats", MFD_CLOEXEC);
    if (saved < 0 || file < 0 || dup2(file, STDERR_FILENO) < 0) fail(Line() << "differential: no descriptor");
    errno = kSentinel;
    slots.ours().allocator().stats();
    const int seen = errno;
    dup2(saved, STDERR_FILENO);
    close(saved);
    char text[2048];
    const ssize_t length = pread(file, text, sizeof text - 1, 0);
    close(file);
    text[length < 0 ? 0 : length] = '\0';
    expect_errno(caller, "malloc_stats", seen, kSentinel);
    const auto number = [&](const char* name) { return number_behind(caller, "malloc_stats", text, name); };
    compare_counted(caller, "malloc_stats",
                    {number("blocks in use                   "), number("blocks in use, bytes            "),
                     number("large objects in use            "), number("large objects in use, bytes     ")},
                    slots.sums());
}

void check_info(const Caller& caller, const Slots& slots, bool exact) {
    char text[2048] = {};
    std::FILE* stream = fmemopen(text, sizeof text, "w");
    if (stream == nullptr) fail(Line() << "differential: no stream");
    const auto info = slots.ours().allocator().info;
    const int refused = info(1, stream);
    const int error = errno;
    const int done = info(0, stream);
    std::fclose(stream);
    expect(caller, "malloc_info", "the value for options that do not exist", static_cast<size_t>(refused), 0,
           refused == -1);
    expect_errno(caller, "malloc_info with options that do not exist", error, EINVAL);
    expect(caller, "malloc_info", "the value", static_cast<size_t>(done), 0, done == 0);
    const auto number = [&](const char* name) { return number_behind(caller, "malloc_info", text, name); };
    if (std::strncmp(text, "<malloc version=", 16) != 0) number("<malloc version=");
    number("</malloc>");
    if (!exact) return;
    const char* large = std::strstr(text, "<large ");
    const char* blocks = std::strstr(text, "<blocks ");
    if (large == nullptr || blocks == nullptr) number("<blocks and <large");
    const auto behind = [&](const char* from, const char* name) {
        return number_behind(caller, "malloc_info", from, name);
    };
    compare_counted(caller, "malloc_info",
                    {behind(blocks, " count=\""), behind(blocks, " bytes=\""), behind(large, " count=\""),
                     behind(large, " bytes=\"")},
                    slots.sums());
}

}  // namespace stress
