// Who runs this code.
#ifndef RTSPAN_OS_THREAD_H
#define RTSPAN_OS_THREAD_H

namespace rtspan::os {

// One system call each: libc's cached copies are wrong in the child of a raw clone().
int thread_id();
int process_id();

}  // namespace rtspan::os

#endif
