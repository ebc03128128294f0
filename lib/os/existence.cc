#include "os/existence.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/syscall.h>

#include "os/system_call.h"

namespace rtspan::os {
namespace {

// Whether the first thread has ended and others go on; false where there is no /proc. Of status, not of stat: emulators
// (QEMU) make up the latter.
bool first_thread_is_zombie() {
    long file = system_call(SYS_openat, AT_FDCWD, reinterpret_cast<long>("/proc/self/status"), O_RDONLY | O_CLOEXEC);
    if (file < 0) return false;
    // "Name:", with at most 15 characters, escaped where they are not printable, "Umask:", and this.
    constexpr char kLabel[] = "\nState:\t";
    constexpr long kLabelLength = sizeof kLabel - 1;
    char text[128];
    long length = system_call(SYS_read, file, reinterpret_cast<long>(text), sizeof text);
    system_call(SYS_close, file);
    for (long at = 0; at + kLabelLength < length; at++) {
        if (__builtin_memcmp(text + at, kLabel, kLabelLength) == 0) return text[at + kLabelLength] == 'Z';
    }
    return false;
}

}  // namespace

bool thread_exists(int pid, int tid) {
    if (system_call(SYS_tgkill, pid, tid, 0) == -ESRCH) return false;
    return tid != pid || !first_thread_is_zombie();
}
bool thread_exists_anywhere(int tid) { return system_call(SYS_tkill, tid, 0) != -ESRCH; }

}  // namespace rtspan::os
