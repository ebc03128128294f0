// Explores the schedules of two or three threads in the allocator's own code: exploration.h says which, scenarios.h
// what the threads do, players.h how one of them runs at a time, accounts.h what must hold after each schedule.
//
// A schedule that fails is printed as a text that --replay carries out again. With --bug and --expect-failure a bug
// that is seeded in the library must be found.
#include <getopt.h>
#include <sys/mman.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>
#include <string>
#include <vector>

#include "exploration.h"
#include "sync/seeded_bug.h"

namespace stress {

namespace {

constexpr char kUsage[] =
    "usage: explore [--scenario NAME]... [--schedules N] [--preemptions N] [--random N] [--seed N]\n"
    "               [--bug NAME --expect-failure] [--replay SCHEDULE] [--list]\n"
    "  --scenario NAME      this one, not all; may be given again\n"
    "  --schedules N        at most so many systematic schedules of a scenario (default 1000)\n"
    "  --preemptions N      with at most so many preemptions (default 3)\n"
    "  --random N           so many random schedules besides (default 200)\n"
    "  --seed N             of the random ones (default 1)\n"
    "  --bug NAME           a seeded bug (see lib/sync/seeded_bug.h)\n"
    "  --expect-failure     succeeds if a schedule fails, and prints the first one\n"
    "  --replay SCHEDULE    carries out this one alone, of one scenario\n"
    "  --list               names the scenarios and the bugs\n";

constexpr const char* kBugs[] = {"none",
                                 "announcement_keeps_limit",
                                 "announcement_waits",
                                 "version_stands",
                                 "leave_without_evaluation",
                                 "claim_without_look",
                                 "retire_without_owner",
                                 "park_without_second_look",
                                 "hint_without_second_look"};

struct Options {
    std::vector<const Scenario*> scenarios;
    Budget budget;
    bool expects_failure = false;
    std::optional<Schedule> replay;
};

std::vector<const Scenario*> all_scenarios() {
    std::vector<const Scenario*> all;
    for (const auto scenarios : {free_scenarios(), life_scenarios(), part_scenarios()}) {
        for (const Scenario& scenario : scenarios) all.push_back(&scenario);
    }
    return all;
}

[[noreturn]] void refuse(const char* what, const char* value) {
    std::fprintf(stderr, "explore: %s: %s\n", what, value);
    std::exit(2);
}

uint64_t parse_number(const char* option, const char* text) {
    char* end = nullptr;
    errno = 0;
    const unsigned long long number = std::strtoull(text, &end, 10);
    if (errno != 0 || end == text || *end != '\0' || *text == '-') refuse(option, text);
    return number;
}

const Scenario* scenario_named(const char* name) {
    for (const Scenario* scenario : all_scenarios()) {
        if (std::strcmp(scenario->name, name) == 0) return scenario;
    }
    refuse("no such scenario", name);
}

rtspan::SeededBug bug_named(const char* name) {
    for (unsigned i = 0; i < std::size(kBugs); i++) {
        if (std::strcmp(kBugs[i], name) == 0) return static_cast<rtspan::SeededBug>(i);
    }
    refuse("no such bug", name);
}

[[noreturn]] void list() {
    for (const Scenario* scenario : all_scenarios()) std::printf("scenario: %s\n", scenario->name);
    for (const char* bug : kBugs) std::printf("bug: %s\n", bug);
    std::exit(0);
}

Options parse(int argc, char** argv) {
    Options options;
    const option known[] = {{"scenario", required_argument, nullptr, 's'},
                            {"schedules", required_argument, nullptr, 'n'},
                            {"preemptions", required_argument, nullptr, 'p'},
                            {"random", required_argument, nullptr, 'r'},
                            {"seed", required_argument, nullptr, 'x'},
                            {"bug", required_argument, nullptr, 'b'},
                            {"expect-failure", no_argument, nullptr, 'e'},
                            {"replay", required_argument, nullptr, 'y'},
                            {"list", no_argument, nullptr, 'l'},
                            {"help", no_argument, nullptr, 'h'},
                            {}};
    for (int c; (c = getopt_long(argc, argv, "", known, nullptr)) != -1;) {
        switch (c) {
            case 's':
                options.scenarios.push_back(scenario_named(optarg));
                break;
            case 'n':
                options.budget.schedules = parse_number("--schedules", optarg);
                break;
            case 'p':
                options.budget.preemptions = static_cast<unsigned>(parse_number("--preemptions", optarg));
                break;
            case 'r':
                options.budget.random = parse_number("--random", optarg);
                break;
            case 'x':
                options.budget.seed = parse_number("--seed", optarg);
                break;
            case 'b':
                rtspan::the_seeded_bug = bug_named(optarg);
                break;
            case 'e':
                options.expects_failure = true;
                break;
            case 'y':
                options.replay = parse_schedule(optarg);
                if (!options.replay || options.replay->size() > Page::kMaxRuns) refuse("no schedule", optarg);
                break;
            case 'l':
                list();
            case 'h':
                std::fputs(kUsage, stdout);
                std::exit(0);
            default:
                std::exit(2);
        }
    }
    if (optind < argc) refuse("unknown argument", argv[optind]);
    if (options.replay && options.scenarios.size() != 1) refuse("--replay needs one scenario", "--scenario NAME");
    if (options.scenarios.empty()) options.scenarios = all_scenarios();
    return options;
}

void print(const Scenario& scenario, const Failure& failure) {
    std::printf("explore: %s: FAILED: %s\n", scenario.name, failure.what.c_str());
    std::printf("    schedule %llu of this scenario; %u points, %u preemptions:\n    --scenario \"%s\" --replay %s\n",
                static_cast<unsigned long long>(failure.number), failure.points, preemptions(failure.schedule),
                scenario.name, text_of(failure.schedule).c_str());
}

// Whether it failed.
bool replay(const Scenario& scenario, const Schedule& schedule) {
    const std::string what = execute(scenario, schedule, {});
    if (page->diverged) std::printf("explore: %s: the schedule could not be followed\n", scenario.name);
    if (what.empty()) {
        std::printf("explore: %s: %u points, passed\n", scenario.name, page->step_count);
    } else {
        print(scenario, {what, schedule_carried_out(), page->step_count, 1});
    }
    return !what.empty() || page->diverged;
}

bool any_fails(const Options& options) {
    uint64_t schedules = 0;
    bool failed = false;
    for (const Scenario* scenario : options.scenarios) {
        Exploration exploration(*scenario, options.budget);
        const std::optional<Failure> failure = exploration.run();
        schedules += exploration.schedules();
        if (failure) {
            print(*scenario, *failure);
            failed = true;
            if (options.expects_failure) break;
        } else {
            std::printf("explore: %s: %s: passed\n", scenario->name, exploration.summary().c_str());
        }
        std::fflush(stdout);
    }
    std::printf("explore: %llu schedules, seed %llu: %s\n", static_cast<unsigned long long>(schedules),
                static_cast<unsigned long long>(options.budget.seed), failed ? "FAILED" : "passed");
    return failed;
}

int run(int argc, char** argv) {
    const Options options = parse(argc, argv);
    setenv("RTSPAN_ARENA", "1G", 1);
    void* memory = mmap(nullptr, sizeof(Page), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) refuse("no memory", "for the shared page");
    page = new (memory) Page();
    const bool failed = options.replay ? replay(*options.scenarios[0], *options.replay) : any_fails(options);
    return failed == options.expects_failure ? 0 : 1;
}

}  // namespace

}  // namespace stress

int main(int argc, char** argv) { return stress::run(argc, argv); }
