#include "lab/lab.h"

namespace rtspan {

constinit thread_local ThreadState the_thread;

}  // namespace rtspan
