#include "os/fatal.h"

#include <stdlib.h>

namespace rtspan::os {

void fatal(FatalLine& line) {
    line.add("\n").write();
    abort();
}

void fatal(const char* what, const void* where) {
    FatalLine line;
    line.add(what);
    if (where != nullptr) line.add(": ").add_hex(reinterpret_cast<uintptr_t>(where));
    fatal(line);
}

}  // namespace rtspan::os
