#include "supervisor.h"

#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstring>
#include <new>

#include "report.h"

namespace stress {

namespace {

constexpr int kPollMilliseconds = 100;
// Counted in ticks of at least this, not by the clock: a machine that was suspended does not look hung.
constexpr unsigned kHungTicks = Supervisor::kHungSeconds * 1000 / kPollMilliseconds;

std::vector<int> processors() {
    cpu_set_t set;
    CPU_ZERO(&set);
    sched_getaffinity(0, sizeof set, &set);
    std::vector<int> numbers;
    for (int i = 0; i < CPU_SETSIZE; i++) {
        if (CPU_ISSET(static_cast<size_t>(i), &set)) numbers.push_back(i);
    }
    return numbers;
}

std::string read_messages(int fd) {
    char text[600];
    const ssize_t length = pread(fd, text, sizeof text - 1, 0);
    std::string message(text, length > 0 ? static_cast<size_t>(length) : 0);
    while (!message.empty() && message.back() == '\n') message.pop_back();
    return message;
}

template <class T>
T* map_shared() {
    void* memory = mmap(nullptr, sizeof(T), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) fail(Line() << "interruption: no shared memory");
    return static_cast<T*>(memory);
}

}  // namespace

Supervisor::Supervisor(unsigned jobs) : slots_(jobs) {
    const std::vector<int> numbers = processors();
    for (unsigned i = 0; i < jobs; i++) {
        Slot& slot = slots_[i];
        slot.processor = numbers[i % numbers.size()];
        slot.messages = memfd_create("messages", MFD_CLOEXEC);
        if (slot.messages < 0) fail(Line() << "interruption: no memory file");
        slot.outcome = map_shared<Outcome>();
        slot.trail = map_shared<Trail>();
    }
}

void Supervisor::start(const Run& run, const Judge& judge) {
    for (;;) {
        for (Slot& slot : slots_) {
            if (slot.pid != 0) continue;
            slot.run = run;
            slot.run.processor = slot.processor;
            slot.judge = &judge;
            return launch(slot);
        }
        wait_for_one();
    }
}

void Supervisor::finish() {
    for (Slot& slot : slots_) {
        while (slot.pid != 0) wait_for_one();
    }
}

void Supervisor::launch(Slot& slot) {
    new (slot.outcome) Outcome{};
    slot.outcome->trail = slot.trail;
    if (slot.run.instruction == 0) slot.trail->size = 0;
    [[maybe_unused]] const int truncated = ftruncate(slot.messages, 0);
    slot.ticks = 0;
    const pid_t supervisor = getpid();
    slot.pid = fork();
    if (slot.pid < 0) fail(Line() << "interruption: fork failed");
    if (slot.pid == 0) {
        setpgid(0, 0);
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() != supervisor) _exit(1);
        lseek(slot.messages, 0, SEEK_SET);
        fcntl(slot.messages, F_SETFL, O_APPEND);
        dup2(slot.messages, STDERR_FILENO);
        carry_out(slot.run, *slot.outcome);
    }
    setpgid(slot.pid, slot.pid);
    slot.pidfd = static_cast<int>(syscall(SYS_pidfd_open, slot.pid, 0));
    if (slot.pidfd < 0) {
        kill(-slot.pid, SIGKILL);
        fail(Line() << "interruption: no pidfd");
    }
}

void Supervisor::wait_for_one() {
    std::vector<pollfd> fds;
    for (const Slot& slot : slots_)
        fds.push_back({.fd = slot.pid != 0 ? slot.pidfd : -1, .events = POLLIN, .revents = 0});
    poll(fds.data(), fds.size(), kPollMilliseconds);
    const auto now = std::chrono::steady_clock::now();
    const bool ticked = now - last_tick_ >= std::chrono::milliseconds(kPollMilliseconds);
    if (ticked) last_tick_ = now;
    for (size_t i = 0; i < slots_.size(); i++) {
        if (slots_[i].pid == 0) continue;
        if (fds[i].revents != 0) {
            conclude(slots_[i], false);
        } else if (ticked && ++slots_[i].ticks >= kHungTicks) {
            conclude(slots_[i], true);
        }
    }
}

void Supervisor::conclude(Slot& slot, bool hung) {
    // Its threads and its forked children.
    kill(-slot.pid, SIGKILL);
    close(slot.pidfd);
    int status = 0;
    waitpid(slot.pid, &status, 0);
    slot.pid = 0;
    Verdict verdict{.hung = hung, .ended_well = !hung && WIFEXITED(status) && WEXITSTATUS(status) == 0, .message = {}};
    if (!verdict.ended_well) {
        verdict.message = read_messages(slot.messages);
        const Stage stage = slot.outcome->stage.load(std::memory_order_relaxed);
        if (hung) verdict.message += "HUNG for " + std::to_string(kHungSeconds) + " s";
        if (!hung && WIFSIGNALED(status)) {
            verdict.message += std::string(verdict.message.empty() ? "" : "; ") + "killed by signal " +
                               std::to_string(WTERMSIG(status));
        }
        verdict.message += std::string(" [in stage: ") + name_of(stage) + "]";
    }
    (*slot.judge)(slot.run, *slot.outcome, verdict);
}

}  // namespace stress
