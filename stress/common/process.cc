#include "process.h"

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
    FILE* file = std::fopen(path, "re");
    if (file == nullptr) return 0;
    unsigned long resident_pages = 0;
    if (std::fscanf(file, "%*u %lu", &resident_pages) != 1) resident_pages = 0;
    std::fclose(file);
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

uint64_t parse_number(const char* option, const char* text) {
    char* end = nullptr;
    errno = 0;
    const uint64_t number = std::strtoull(text, &end, 0);
    if (errno != 0 || end == text || *end != '\0' || *text == '-') {
        std::fprintf(stderr, "%s: not a number: %s\n", option, text);
        std::exit(64);
    }
    return number;
}

}  // namespace stress
