#include "os/tunables.h"

#include <unistd.h>

#include <cstdint>

namespace rtspan::os {
namespace {

// The value of the variable `name`, null where unset. getenv() is not documented as async-signal-safe.
const char* variable(const char* name) {
    if (environ == nullptr) return nullptr;
    for (char** entry = environ; *entry != nullptr; entry++) {
        const char* text = *entry;
        const char* wanted = name;
        while (*wanted != 0 && *text == *wanted) text++, wanted++;
        if (*wanted == 0 && *text == '=') return text + 1;
    }
    return nullptr;
}

}  // namespace

bool rseq_wanted() {
    const char* value = variable("RTSPAN_RSEQ");
    return value == nullptr || value[0] != '0' || value[1] != 0;
}

size_t arena_bytes_wanted() {
    const char* value = variable("RTSPAN_ARENA");
    return value == nullptr ? 0 : parse_bytes(value);
}

size_t parse_bytes(const char* text) {
    size_t number = 0;
    bool any = false;
    for (; *text >= '0' && *text <= '9'; text++, any = true) {
        if (__builtin_mul_overflow(number, size_t{10}, &number)) return 0;
        if (__builtin_add_overflow(number, static_cast<size_t>(*text - '0'), &number)) return 0;
    }
    int shift = 0;
    for (const char* suffix = "KkMmGgTt"; *suffix != 0 && *text != 0; suffix += 2) {
        shift += 10;
        if (*text != suffix[0] && *text != suffix[1]) continue;
        text++;
        break;
    }
    if (!any || *text != 0 || (number << shift) >> shift != number) return 0;
    return number << shift;
}

}  // namespace rtspan::os
