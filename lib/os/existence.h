// Whether threads are still there.
#ifndef RTSPAN_OS_EXISTENCE_H
#define RTSPAN_OS_EXISTENCE_H

namespace rtspan::os {

// Whether this process, `pid`, has a thread `tid`; one that is being taken down counts. One system call, for a
// process's first thread three more: the kernel keeps its tid until the process ends.
bool thread_exists(int pid, int tid);
// Whether any process has it.
bool thread_exists_anywhere(int tid);

}  // namespace rtspan::os

#endif
