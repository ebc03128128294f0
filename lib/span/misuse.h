// What misuse of a block ends the program with: one line that names the call, the fault, the address and what is known
// of its span. Async-signal-safe.
//
//   rtspan: CALL: WHAT: ADDRESS[, span INDEX is STATE[, size class NUMBER (BYTES bytes)]]
#ifndef RTSPAN_SPAN_MISUSE_H
#define RTSPAN_SPAN_MISUSE_H

#include <cstdint>

namespace rtspan {

class Span;

// `call` is the function that was called wrongly, or that came upon the damage. `span` is null where the address lies
// in none.
[[noreturn, gnu::cold]] void end_by_misuse(const char* call, const char* what, uintptr_t address, const Span* span);

}  // namespace rtspan

#endif
