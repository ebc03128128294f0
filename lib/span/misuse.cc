#include "span/misuse.h"

#include "os/fatal.h"
#include "span/span.h"

namespace rtspan {
namespace {

const char* name_of(SpanState state) {
    switch (state) {
        case SpanState::expected:
            return "unused";
        case SpanState::free:
            return "free";
        case SpanState::hot:
            return "hot";
        case SpanState::floating:
            return "floating";
        case SpanState::reusable:
            return "reusable";
        case SpanState::large:
            return "large";
    }
    return "damaged";
}

}  // namespace

void end_by_misuse(const char* call, const char* what, uintptr_t address, const Span* span) {
    os::FatalLine line;
    line.add(call).add(": ").add(what).add(": ").add_hex(address);
    if (span != nullptr) {
        Anchor anchor = span->anchor();
        line.add(", span ").add_decimal(span->index()).add(" is ").add(name_of(anchor.state()));
        if (anchor.has_blocks()) {
            unsigned size_class = span->size_class();
            line.add(", size class ").add_decimal(size_class);
            line.add(" (").add_decimal(geometry(size_class).block_size).add(" bytes)");
        }
    }
    os::fatal(line);
}

}  // namespace rtspan
