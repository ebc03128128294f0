#include "execution.h"

#include <rtspan/rtspan.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>

#include "accounts.h"
#include "report.h"
#include "verdict.h"
#include "world.h"

namespace stress {

namespace {

constexpr unsigned kMaxSeconds = 60;  // for a process that takes a millisecond where nothing spins

// What the allocator itself says before it aborts.
int error_file() {
    static const int file = memfd_create("stderr", 0);
    return file;
}

void stay_on_one_processor() {
    cpu_set_t one;
    CPU_ZERO(&one);
    const int here = sched_getcpu();
    CPU_SET(here < 0 ? 0 : here, &one);
    if (sched_setaffinity(0, sizeof one, &one) != 0) fail_schedule("the process cannot choose its processor", 0);
}

// All blocks, by the players in turn.
void give_back_all() {
    for (unsigned i = 0; live_blocks() != 0; i++) {
        Player& player = players[i % kMaxPlayers];
        if (player.is_stopped()) continue;
        player.does([] { give_back(live_block(0)); });
    }
}

// Nobody waits for those who are stopped: everything that the others have can be freed, and used anew.
void go_on_without_the_stopped() {
    give_back_all();
    for (Player& player : players) {
        if (player.is_stopped()) continue;
        player.does([] {
            for (const size_t size : {kSeven, kThree, size_t{3} << 20}) give_back(obtain(size));
        });
    }
}

void carry_out(const Scenario& scenario) {
    stay_on_one_processor();
    scenario.set_up();
    note_frontier();
    play(scenario.scripts);
    const bool any_stopped = a.is_stopped() || b.is_stopped() || c.is_stopped();
    if (any_stopped) {
        go_on_without_the_stopped();
        release_stopped();
    }
    check_spans();
    if (scenario.account != nullptr && !any_stopped) scenario.account();
    give_back_all();
    check_spans();
    for (Player& player : players) player.leaves();
    pass_by([] { rtspan_malloc_trim(SIZE_MAX); });  // repairs; nothing goes back to the kernel
    // Who goes on without a stopped player needs spans of its own for what it uses anew.
    check_pool(scenario.spans + (any_stopped ? 3 * kMaxPlayers : 0), scenario.lost);
}

std::string what_went_wrong(int status) {
    std::string text = page->failure.data();
    if (text.empty() && WIFSIGNALED(status)) {
        text = WTERMSIG(status) == SIGALRM ? "no end" : strsignal(WTERMSIG(status));
        std::array<char, 256> said{};
        const ssize_t length = pread(error_file(), said.data(), said.size() - 1, 0);
        if (length > 0) text = text + ": " + std::string(said.data(), static_cast<size_t>(length) - 1);
    } else if (text.empty()) {
        text = "exit code " + std::to_string(WEXITSTATUS(status));
    }
    return text;
}

}  // namespace

void fail_schedule(const char* what, uint64_t detail) {
    std::snprintf(page->failure.data(), page->failure.size(), "%s (%llu)", what,
                  static_cast<unsigned long long>(detail));
    _exit(kExitFailed);
}

std::string execute(const Scenario& scenario, const Schedule& schedule, const Chance& chance) {
    std::copy(schedule.begin(), schedule.end(), page->runs.begin());
    page->run_count = static_cast<unsigned>(schedule.size());
    page->chance = chance;
    page->step_count = 0;
    page->diverged = false;
    page->failure[0] = '\0';
    if (ftruncate(error_file(), 0) != 0) return "no file for the error messages";
    const pid_t child = fork();
    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        alarm(kMaxSeconds);
        dup2(error_file(), STDERR_FILENO);
        lseek(STDERR_FILENO, 0, SEEK_SET);
        carry_out(scenario);
        _exit(0);
    }
    int status = -1;
    if (child < 0 || waitpid(child, &status, 0) != child) return "no process can be made";
    return status == 0 ? std::string() : what_went_wrong(status);
}

Schedule schedule_carried_out() {
    Schedule schedule;
    for (unsigned i = 0; i < page->step_count; i++) {
        const Step& step = page->steps[i];
        const bool goes_on =
            i != 0 && page->steps[i - 1].player == step.player && page->steps[i - 1].kind != Step::kEnd;
        if (!goes_on) schedule.push_back(Run{.player = step.player});
        Run& run = schedule.back();
        run.points = step.kind == Step::kEnd ? 0 : run.points + 1;
        run.stops = step.kind == Step::kStop;
    }
    // It failed in the middle of this.
    if (!schedule.empty() && !schedule.back().stops) schedule.back().points = 0;
    return schedule;
}

}  // namespace stress
