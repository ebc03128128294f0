#include "trial.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <new>

#include "report.h"
#include "sanitizer.h"
#include "shadow_map.h"

namespace stress {

namespace {

// Several times what programs may hold, for both allocators' free memory. A sanitizer's own memory has no such bound.
constexpr size_t kMaxResident = kSanitizer ? SIZE_MAX : size_t{3} << 30;

struct Job {
    const TrialOptions& options;
    const Source& source;
    uint64_t first, count;
};

void run_job(const void* argument) {
    const Job& job = *static_cast<const Job*>(argument);
    RunOptions options = job.options.run;
    options.runner = job.options.runner;
    options.runner->tid.store(gettid(), std::memory_order_relaxed);
    options.runner->running.store(true, std::memory_order_relaxed);
    Allocator allocator;
    if (job.options.fault != nullptr) {
        allocator = seeded(*job.options.fault);
        options.allocator = &allocator;
    }
    for (uint64_t number = job.first; number < job.first + job.count; ++number) {
        job.options.reached->store(number, std::memory_order_relaxed);
        const Program program = job.source(number);
        Machine(program, options).run();
    }
    // Takes longer than a program.
    if (job.options.quiet) _exit(0);
    if (const void* marked = shadow_map.find_marked()) {
        fail(Line() << "differential: FAILED: all is freed, but the shadow has a block at " << marked);
    }
    _exit(0);
}

// Keeps what is written on stderr, by this process and its children.
class Capture {
  public:
    explicit Capture(bool wanted) {
        if (!wanted) return;
        saved_ = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3);
        file_ = memfd_create("messages", MFD_CLOEXEC);
        if (saved_ < 0 || file_ < 0 || dup2(file_, STDERR_FILENO) < 0) fail(Line() << "differential: no descriptor");
    }
    std::string end() {
        if (file_ < 0) return "";
        dup2(saved_, STDERR_FILENO);
        char text[4096];
        const ssize_t length = pread(file_, text, sizeof text, 0);
        close(saved_);
        close(file_);
        return std::string(text, length < 0 ? 0 : static_cast<size_t>(length));
    }

  private:
    int saved_ = -1, file_ = -1;
};

}  // namespace

TrialOptions trial_options(const RunOptions& run) {
    void* shared =
        mmap(nullptr, sizeof(std::atomic<uint64_t>), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED) fail(Line() << "differential: no shared memory");
    TrialOptions options{.run = run, .runner = map_runners(1), .reached = new (shared) std::atomic<uint64_t>(0)};
    return options;
}

Outcome try_programs(const TrialOptions& options, const Source& source, uint64_t first, uint64_t count) {
    options.runner->steps.store(0, std::memory_order_relaxed);
    options.runner->running.store(false, std::memory_order_relaxed);
    options.reached->store(first, std::memory_order_relaxed);
    const Job job{.options = options, .source = source, .first = first, .count = count};
    const Watched watched{.program = "differential",
                          .what = options.run.free_running ? "free running" : "in turns",
                          .seed = options.run.seed,
                          .max_resident = kMaxResident,
                          .runners = options.runner,
                          .count = 1,
                          .keep_hung = false};
    Capture capture(options.quiet);
    Outcome outcome;
    outcome.status = run_watched(watched, run_job, &job);
    outcome.message = capture.end();
    outcome.reached = options.reached->load(std::memory_order_relaxed);
    outcome.steps = options.runner->steps.load(std::memory_order_relaxed);
    return outcome;
}

Program minimise(Program program, unsigned trials, const std::function<bool(const Program&)>& fails) {
    for (size_t piece = std::max<size_t>(program.size() / 2, 1); piece != 0;) {
        bool smaller = false;
        for (size_t begin = 0; begin < program.size();) {
            if (trials-- == 0) return program;
            const size_t end = std::min(begin + piece, program.size());
            Program candidate(program.begin(), program.begin() + static_cast<ptrdiff_t>(begin));
            candidate.insert(candidate.end(), program.begin() + static_cast<ptrdiff_t>(end), program.end());
            if (fails(candidate)) {
                program = candidate;
                smaller = true;
            } else {
                begin = end;
            }
        }
        if (piece > 1 || !smaller) piece /= 2;
    }
    return program;
}

}  // namespace stress
