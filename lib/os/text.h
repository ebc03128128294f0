// A line of text in a fixed buffer, for messages from code that may run in a signal handler. What does not fit is cut.
#ifndef RTSPAN_OS_TEXT_H
#define RTSPAN_OS_TEXT_H

#include <cstddef>
#include <cstdint>

#include "os/system_call.h"

namespace rtspan::os {

template <size_t kCapacity>
class Text {
  public:
    Text& add(const char* text) {
        while (*text != 0) add(*text++);
        return *this;
    }

    Text& add(char c) {
        if (length_ < kCapacity) buffer_[length_++] = c;
        return *this;
    }

    // Right-aligned in `width` columns.
    Text& add_decimal(uint64_t value, int width = 0) {
        char digits[20];
        int count = 0;
        do {
            digits[count++] = static_cast<char>('0' + value % 10);
            value /= 10;
        } while (value != 0);
        for (int i = count; i < width; i++) add(' ');
        while (count > 0) add(digits[--count]);
        return *this;
    }

    Text& add_hex(uint64_t value) {
        add("0x");
        int shift = 60;
        while (shift > 0 && (value >> shift) == 0) shift -= 4;
        for (; shift >= 0; shift -= 4) add("0123456789abcdef"[(value >> shift) & 15]);
        return *this;
    }

    const char* data() const { return buffer_; }
    size_t length() const { return length_; }
    void write() const { write_error(buffer_, length_); }

  private:
    char buffer_[kCapacity];
    size_t length_ = 0;
};

}  // namespace rtspan::os

#endif
