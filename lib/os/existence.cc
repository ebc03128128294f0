#include "os/existence.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/syscall.h>

#include "os/system_call.h"

namespace rtspan::os {
namespace {

// Whether the first thread has ended and others go on; false where there is no /proc.
bool first_thread_is_zombie() {
    long file = system_call(SYS_openat, AT_FDCWD, reinterpret_cast<long>("/proc/self/stat"), O_RDONLY | O_CLOEXEC);
    if (file < 0) return false;
    // pid (name) state ...; the name has at most 15 characters, any of them.
    char text[64];
    long length = system_call(SYS_read, file, reinterpret_cast<long>(text), sizeof text);
    system_call(SYS_close, file);
    while (length > 0 && text[length - 1] != ')') length--;
    return length > 0 && length + 1 < static_cast<long>(sizeof text) && text[length + 1] == 'Z';
}

}  // namespace

bool thread_exists(int pid, int tid) {
    if (system_call(SYS_tgkill, pid, tid, 0) == -ESRCH) return false;
    return tid != pid || !first_thread_is_zombie();
}
bool thread_exists_anywhere(int tid) { return system_call(SYS_tkill, tid, 0) != -ESRCH; }

}  // namespace rtspan::os
