#include "os/thread.h"

#include <sys/syscall.h>

#include "os/system_call.h"

namespace rtspan::os {

int thread_id() { return static_cast<int>(system_call(SYS_gettid)); }
int process_id() { return static_cast<int>(system_call(SYS_getpid)); }

}  // namespace rtspan::os
