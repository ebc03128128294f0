#include "stepping.h"

#include <cerrno>
#include <cstdlib>

#include "trap_flag.h"

namespace stress {

#if defined(__x86_64__)

namespace {

Stepped* current = nullptr;

void on_trap(int, siginfo_t*, void* context) {
    const int interrupted_errno = errno;
    if (!current->interrupt()) clear_trap_flag(context);
    errno = interrupted_errno;
}

}  // namespace

void run_stepped(Stepped& stepped) {
    current = &stepped;
    handle_traps(on_trap);
    set_trap_flag();
    stepped.body();
    clear_trap_flag();
}

#else

void run_stepped(Stepped&) { std::abort(); }

#endif

}  // namespace stress
