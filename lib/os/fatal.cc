#include "os/fatal.h"

#include <stdlib.h>

#include "os/text.h"

namespace rtspan::os {

void fatal(const char* what, const void* where) {
    Text<256> line;
    line.add("rtspan: ").add(what);
    if (where != nullptr) line.add(": ").add_hex(reinterpret_cast<uintptr_t>(where));
    line.add("\n").write();
    abort();
}

}  // namespace rtspan::os
