// Forks in a handler that interrupts the allocator, and from a thread's main code; and what the child does then.
//
// The child has one thread, the one that forked, in the middle of a call or not, and a copy of everybody's memory. It
// frees inherited blocks from the slots, allocates, and, after a fork() proper, starts threads that allocate. Some
// children return from the handler and so end the call that was interrupted; others end in the handler. An alarm ends a
// child that hangs; the parent's thread fails unless each child exits with status 0.
#include <rtspan/rtspan.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>

#include "report.h"
#include "seat.h"

namespace stress {

namespace {

constexpr unsigned kHungChildSeconds = 15;
constexpr unsigned kThreadsOfChild = 2;
constexpr unsigned kStepsOfChild = 40;
constexpr size_t kLargestOfVfork = size_t{4} << 20;

enum class Call : uint8_t { kFork, kBareFork, kClone, kVfork, kVforkExec };
constexpr unsigned kCalls = 5;
constexpr const char* kCallNames[kCalls] = {"fork", "_Fork", "clone", "vfork", "vfork and exec"};

// The child works on the parent's memory and with the parent's LAB.
pid_t vfork_and_leave(bool exec) {
    const pid_t pid = vfork();
    if (pid == 0) {
        for (size_t size = 16; size <= kLargestOfVfork; size *= 4) rtspan_free(rtspan_malloc(size));
        if (exec) execl("/bin/true", "true", static_cast<char*>(nullptr));
        _exit(exec ? 127 : 0);
    }
    return pid;
}

class SignalsBlocked {
  public:
    SignalsBlocked() {
        const sigset_t signals = victims_signals();
        pthread_sigmask(SIG_BLOCK, &signals, &before_);
    }
    ~SignalsBlocked() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

  private:
    sigset_t before_;
};

pid_t carry_out(Call call) {
    switch (call) {
        case Call::kFork:
            return fork();
        case Call::kBareFork:
            return _Fork();
        case Call::kClone:
            return static_cast<pid_t>(syscall(SYS_clone, SIGCHLD, nullptr, nullptr, nullptr, nullptr));
        default:
            return vfork_and_leave(call == Call::kVforkExec);
    }
}

void* work_in_thread(void* seat) {
    for (unsigned i = 0; i < kStepsOfChild; ++i) static_cast<Seat*>(seat)->work();
    return nullptr;
}

}  // namespace

void Seat::fork_somehow() {
    if (child_.load(std::memory_order_relaxed) != 0) return;
    Random random = random_at(kForking);
    const unsigned depth = depth_.load(std::memory_order_relaxed);
    const auto call = static_cast<Call>(random.below(kCalls));
    const bool ends_here = random.one_in(2);
    const bool at_rest = !hands_[depth].are_in_allocator();
    // The kernel begins a fork anew for each signal that comes meanwhile: with timers as short as ours, for ever.
    SignalsBlocked blocked;
    const pid_t pid = carry_out(call);
    if (pid < 0) fail(Line() << kProgram << ": FAILED: fork gave errno " << errno);
    if (pid != 0) {
        fork_call_ = kCallNames[static_cast<unsigned>(call)];
        child_.store(pid, std::memory_order_relaxed);
        ++mishaps_;
        Frame frame = hands_[depth].frame();
        the_accounts.enter_harmless(Way::kFork, frame.phase);
        return;
    }
    in_child_ = true;
    alarm(kHungChildSeconds);
    // libc's locks are in order after fork() alone.
    may_start_threads_ = call == Call::kFork;
    if (ends_here || at_rest) end_child();
    // Else the interrupted call ends first, then run() comes to end_child().
}

// In the frame of the fork: the hands of kForking are the child's own.
void Seat::end_child() {
    Random random = random_at(kForking);
    depth_.store(kForking, std::memory_order_relaxed);
    struck_.store(true, std::memory_order_relaxed);
    hands_[kForking].let_go();
    for (unsigned i = 0; i < kStepsOfChild; ++i) step(kForking);
    if (may_start_threads_) {
        pthread_t threads[kThreadsOfChild];
        for (unsigned i = 0; i < kThreadsOfChild; ++i) {
            Seat& seat = at(kSurvivors + kMaxVictims + i);
            if (const int error = pthread_create(&threads[i], nullptr, work_in_thread, &seat)) {
                fail(Line() << kProgram << ": FAILED: a child's pthread_create gave " << error);
            }
        }
        for (pthread_t thread : threads) pthread_join(thread, nullptr);
    }
    Block block;
    for (size_t index = 0; index < kSlots; index += 1 + random.below(4)) {
        if (take_from_slot(index, block)) hands_[kForking].free(caller_at(kForking), random, block);
    }
    _exit(0);
}

bool Seat::reap(bool wait) {
    const pid_t pid = child_.load(std::memory_order_relaxed);
    int status = 0;
    pid_t reaped;
    do {
        reaped = waitpid(pid, &status, wait ? 0 : WNOHANG);
    } while (reaped < 0 && errno == EINTR);
    if (reaped == 0) return false;
    if (reaped != pid || !WIFEXITED(status) || WEXITSTATUS(status) != 0) {
        Line line;
        line << kProgram << ": FAILED: a child by " << fork_call_ << " of seat " << number_ << " ended with status ";
        line.hex(static_cast<uint64_t>(static_cast<unsigned>(status)));
        if (reaped == pid && WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM) line << ": it hung";
        fail(line);
    }
    child_.store(0, std::memory_order_relaxed);
    return true;
}

}  // namespace stress
