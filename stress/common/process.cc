#include "process.h"

#include <fcntl.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>

namespace stress {

size_t resident_bytes(pid_t pid) {
    char path[64];
    std::snprintf(path, sizeof path, "/proc/%d/statm", static_cast<int>(pid));
    // No stream, which would call an allocator.
    const int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0) return 0;
    char text[128];
    const ssize_t length = read(file, text, sizeof text - 1);
    close(file);
    if (length <= 0) return 0;
    text[length] = '\0';
    unsigned long resident_pages = 0;
    if (std::sscanf(text, "%*u %lu", &resident_pages) != 1) return 0;
    return resident_pages * static_cast<size_t>(sysconf(_SC_PAGESIZE));
}

size_t peak_resident_bytes() {
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    return static_cast<size_t>(usage.ru_maxrss) * 1024;
}

uint64_t fresh_seed() {
    uint32_t seed = 0;
    if (getrandom(&seed, sizeof seed, 0) != sizeof seed) seed = static_cast<uint32_t>(getpid());
    return seed;
}

uint64_t parse_number(const char* option, const char* text, int status) {
    char* end = nullptr;
    errno = 0;
    const uint64_t number = std::strtoull(text, &end, 0);
    if (errno != 0 || end == text || *end != '\0' || *text == '-') {
        std::fprintf(stderr, "%s: not a number: %s\n", option, text);
        std::exit(status);
    }
    return number;
}

}  // namespace stress
