// Single-stepping of the own code by the processor's trap flag: an interruption at a chosen instruction, no matter how
// fast the machine is.
#ifndef RTSPAN_STRESS_STORM_STEPPING_H
#define RTSPAN_STRESS_STORM_STEPPING_H

#include "sanitizer.h"

namespace stress {

// Not under ThreadSanitizer, into whose runtime the handlers would come.
#if defined(__x86_64__)
inline constexpr bool kCanStep = !kThreadSanitizer;
#else
inline constexpr bool kCanStep = false;
#endif

class Stepped {
  public:
    virtual void body() = 0;
    // Called in a signal handler after each instruction of the body, until it returns false.
    virtual bool interrupt() = 0;

  protected:
    ~Stepped() = default;
};

// Calls stepped.body() and, meanwhile, stepped.interrupt(). Takes SIGTRAP over for good; one call at a time.
void run_stepped(Stepped& stepped);

}  // namespace stress

#endif
