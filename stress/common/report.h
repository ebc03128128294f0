// Failure messages that may be written anywhere, in a signal handler too: a fixed buffer, write(2) and _exit.
#ifndef RTSPAN_STRESS_COMMON_REPORT_H
#define RTSPAN_STRESS_COMMON_REPORT_H

#include <unistd.h>

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>

namespace stress {

inline constexpr int kExitFailed = 1;
inline constexpr int kExitHung = 2;

class Line {
  public:
    Line& operator<<(const char* text) {
        while (*text != '\0') put(*text++);
        return *this;
    }
    template <std::unsigned_integral T>
    Line& operator<<(T number) {
        return digits(number, 10);
    }
    template <std::signed_integral T>
    Line& operator<<(T number) {
        if (number >= 0) return digits(static_cast<uint64_t>(number), 10);
        put('-');
        return digits(0 - static_cast<uint64_t>(number), 10);
    }
    Line& operator<<(const void* pointer) { return hex(reinterpret_cast<uintptr_t>(pointer)); }
    Line& operator<<(const Line& other) {
        for (size_t i = 0; i < other.length_; ++i) put(other.buffer_[i]);
        return *this;
    }
    Line& hex(uint64_t number) {
        *this << "0x";
        return digits(number, 16);
    }

    void write_to(int fd) {
        buffer_[length_] = '\n';
        [[maybe_unused]] ssize_t written = write(fd, buffer_.data(), length_ + 1);
    }

  private:
    void put(char c) {
        if (length_ + 1 < buffer_.size()) buffer_[length_++] = c;
    }
    Line& digits(uint64_t number, unsigned base) {
        std::array<char, 20> reversed{};
        unsigned count = 0;
        do {
            reversed[count++] = "0123456789abcdef"[number % base];
            number /= base;
        } while (number != 0);
        while (count != 0) put(reversed[--count]);
        return *this;
    }

    std::array<char, 512> buffer_;
    size_t length_ = 0;
};

// Called after a failure's message, before the process ends: abort(), where a fuzzer wants to see a crash.
using FailureHook = void (*)();
inline constinit FailureHook at_failure = nullptr;

// Writes the line on stderr and ends the whole process.
[[noreturn]] inline void fail(Line& line) {
    line.write_to(STDERR_FILENO);
    if (at_failure != nullptr) at_failure();
    _exit(kExitFailed);
}

}  // namespace stress

#endif
