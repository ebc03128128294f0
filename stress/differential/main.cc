// differential: random programs of all calls of the allocator (op.h), on threads, in handlers and after forks
// (machine.h), each call checked against the rules and a shadow of all live blocks (side.h, rules.h) and against the C
// library's malloc, which carries out the same program beside it (slots.h).
//
// Programs run in forked children, kBatch to a child, so that some meet a new process and some one with a past. A
// program that fails alone is minimised and written to a file, for --replay.
//
// --fault shows that the checker can fail: the same on rtspan with a fault seeded (faults.h), which must be found.
#include <getopt.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <string>
#include <vector>

#include "files.h"
#include "generate.h"
#include "process.h"
#include "report.h"
#include "sanitizer.h"
#include "trial.h"

namespace {

using namespace stress;

constexpr int kExitUsage = 2;
constexpr uint64_t kBatch = 250;
constexpr unsigned kTrials = 600;
constexpr unsigned kTrialsOfFault = 40;
// What fails in free running need not fail each time.
constexpr unsigned kRepeats = 4;

struct Options {
    RunOptions run{.seed = fresh_seed(), .with_reference = !kSanitizer, .with_deaths = !kSanitizer};
    uint64_t programs = 0;
    uint64_t first = 0;
    uint64_t seconds = 0;
    std::string output = "differential-failed";
    std::string fault;
    bool replays = false;
    std::vector<std::string> paths;
};

[[noreturn]] void usage(int status) {
    std::fprintf(
        status == 0 ? stdout : stderr,
        "usage: differential [--seed N] [--programs N | --seconds N] [--first N] [--threads 1-%u] [--free-running]\n"
        "                    [--no-reference] [--output FILE] [--fault NAME|all]\n"
        "       differential --replay [--free-running] [--no-reference] [--seed N] FILE|FOLDER...\n"
        "       differential --print FILE | --corpus FOLDER | --list-faults\n"
        "  --first         the number of the first program: repeats a part of a run\n"
        "  --free-running  threads go at their own pace; else in turns, operation by operation\n"
        "  --no-reference  rtspan alone, not beside the C library's malloc\n"
        "  --output        where a failing program goes, minimised (%s)\n"
        "  --fault         seed a fault, or each in turn: passes if it is found\n"
        "  --corpus        write a program for each feature\n",
        kThreads, Options().output.c_str());
    std::exit(status);
}

[[noreturn]] void refuse(const char* what, const std::string& detail) {
    std::fprintf(stderr, "differential: %s%s\n", what, detail.c_str());
    std::exit(kExitUsage);
}

void print_program(const Program& program) {
    for (size_t i = 0; i < program.size(); ++i) std::printf("%4zu  %s\n", i, describe(program[i]).c_str());
    std::fflush(stdout);
}

void write_corpus(const std::string& folder) {
    for (const Feature& feature : all_features()) write_program(folder + "/" + feature.name, feature.program);
}

Options parse(int argc, char** argv) {
    static const option kLong[] = {
        {"seed", required_argument, nullptr, 's'},
        {"programs", required_argument, nullptr, 'p'},
        {"seconds", required_argument, nullptr, 'n'},
        {"first", required_argument, nullptr, 'F'},
        {"threads", required_argument, nullptr, 't'},
        {"free-running", no_argument, nullptr, 'r'},
        {"no-reference", no_argument, nullptr, 'R'},
        {"output", required_argument, nullptr, 'o'},
        {"fault", required_argument, nullptr, 'f'},
        {"replay", no_argument, nullptr, 'y'},
        {"print", required_argument, nullptr, 'P'},
        {"corpus", required_argument, nullptr, 'c'},
        {"list-faults", no_argument, nullptr, 'l'},
        {"help", no_argument, nullptr, 'h'},
        {nullptr, 0, nullptr, 0},
    };
    Options options;
    const auto number = [](const char* name) { return parse_number(name, optarg, kExitUsage); };
    for (int opt; (opt = getopt_long(argc, argv, "", kLong, nullptr)) != -1;) {
        switch (opt) {
            case 's':
                options.run.seed = number("--seed");
                break;
            case 'p':
                options.programs = number("--programs");
                break;
            case 'n':
                options.seconds = number("--seconds");
                break;
            case 'F':
                options.first = number("--first");
                break;
            case 't':
                options.run.threads = static_cast<unsigned>(std::min<uint64_t>(number("--threads"), kThreads + 1));
                break;
            case 'r':
                options.run.free_running = true;
                break;
            case 'R':
                options.run.with_reference = false;
                break;
            case 'o':
                options.output = optarg;
                break;
            case 'f':
                options.fault = optarg;
                break;
            case 'y':
                options.replays = true;
                break;
            case 'P':
                print_program(read_program(optarg));
                std::exit(0);
            case 'c':
                write_corpus(optarg);
                std::exit(0);
            case 'l':
                for (const Fault& fault : all_faults()) std::printf("%-24s \"%s\"\n", fault.name, fault.message);
                std::exit(0);
            case 'h':
                usage(0);
            default:
                std::exit(kExitUsage);
        }
    }
    for (; optind < argc; ++optind) options.paths.push_back(argv[optind]);
    if (options.run.threads < 1 || options.run.threads > kThreads) refuse("--threads: 1 to ", std::to_string(kThreads));
    if (options.replays && options.paths.empty()) refuse("--replay: no file", "");
    if (!options.replays && !options.paths.empty()) refuse("what is this for: ", options.paths[0]);
    if (options.programs == 0 && options.seconds == 0) options.programs = 1000;
    return options;
}

// Makes the failing program small, and writes it. `also`: what its message must contain.
Program write_minimised(const TrialOptions& trial, const Options& options, const Program& program, unsigned trials,
                        const char* also) {
    TrialOptions quiet = trial;
    quiet.quiet = true;
    const auto fails = [&](const Program& candidate) {
        const Source source = [&](uint64_t) { return candidate; };
        for (unsigned i = 0; i < (options.run.free_running ? kRepeats : 1); ++i) {
            const Outcome outcome = try_programs(quiet, source, 0, 1);
            if (outcome.status != 0 && outcome.message.find(also) != std::string::npos) return true;
        }
        return false;
    };
    if (!fails(program)) return {};
    const Program small = minimise(program, trials, fails);
    write_program(options.output, small);
    return small;
}

int run_random(const Options& options) {
    const TrialOptions trial = trial_options(options.run);
    const Source source = [&](uint64_t number) {
        Random random(options.run.seed, number, 0);
        return random_program(random);
    };
    const time_t began = time(nullptr);
    uint64_t done = 0, steps = 0;
    const auto seconds = [&] { return static_cast<uint64_t>(time(nullptr) - began); };
    while (options.seconds != 0 ? seconds() < options.seconds : done < options.programs) {
        const uint64_t count = options.seconds != 0 ? kBatch : std::min(kBatch, options.programs - done);
        const Outcome outcome = try_programs(trial, source, options.first + done, count);
        steps += outcome.steps;
        if (outcome.status == 0) {
            done += count;
            continue;
        }
        std::fprintf(stderr, "differential: program %lu of seed %lu failed, exit status %d\n", outcome.reached,
                     options.run.seed, outcome.status);
        const Program small = write_minimised(trial, options, source(outcome.reached), kTrials, "");
        if (small.empty()) {
            std::fprintf(stderr,
                         "differential: it does not fail alone; repeat with --seed %lu --first %lu --programs %lu\n",
                         options.run.seed, options.first + done, outcome.reached - options.first - done + 1);
        } else {
            std::fprintf(stderr, "differential: minimised to %zu operations: differential %s--replay %s\n",
                         small.size(), options.run.free_running ? "--free-running " : "", options.output.c_str());
            print_program(small);
        }
        return kExitFailed;
    }
    std::printf("differential: passed: %lu programs, %lu operations, %lu s\n", done, steps, seconds());
    return 0;
}

int replay(const Options& options) {
    const TrialOptions trial = trial_options(options.run);
    uint64_t count = 0, steps = 0;
    for (const std::string& path : options.paths) {
        for (const std::string& file : list_files(path)) {
            const Program program = read_program(file);
            const Outcome outcome = try_programs(
                trial, [&](uint64_t) { return program; }, 0, 1);
            if (outcome.status != 0) {
                std::fprintf(stderr, "differential: %s failed, exit status %d\n", file.c_str(), outcome.status);
                return outcome.status;
            }
            ++count;
            steps += outcome.steps;
        }
    }
    std::printf("differential: passed: %lu files, %lu operations\n", count, steps);
    return 0;
}

bool find_fault(const Options& options, const Fault& fault) {
    TrialOptions trial = trial_options(options.run);
    trial.fault = &fault;
    trial.quiet = true;
    const Source source = [&](uint64_t number) {
        Random random(options.run.seed, number, 0);
        return random_program(random);
    };
    for (uint64_t number = 0; number < options.programs; ++number) {
        const Outcome outcome = try_programs(trial, source, number, 1);
        if (outcome.status == 0) continue;
        const bool as_meant = outcome.message.find(fault.message) != std::string::npos;
        if (!as_meant && !fault.dies_in_library) {
            std::printf("%-24s FAILED: reported as something else: %s", fault.name, outcome.message.c_str());
            return false;
        }
        const Program program = source(number);
        const Program small = write_minimised(trial, options, program, kTrialsOfFault, as_meant ? fault.message : "");
        std::printf("%-24s found by program %lu; %zu operations, minimised %zu\n", fault.name, number, program.size(),
                    small.size());
        if (!small.empty()) return true;
        std::printf("%-24s FAILED: not found again\n", fault.name);
        return false;
    }
    std::printf("%-24s FAILED: not found\n", fault.name);
    return false;
}

int find_faults(const Options& options) {
    unsigned found = 0, missed = 0;
    for (const Fault& fault : all_faults()) {
        if (options.fault == "all" || options.fault == fault.name) ++(find_fault(options, fault) ? found : missed);
        std::fflush(stdout);
    }
    if (found + missed == 0) refuse("--fault: no such fault: ", options.fault);
    std::printf("differential: %u faults found, %u missed\n", found, missed);
    return missed == 0 ? 0 : kExitFailed;
}

}  // namespace

int main(int argc, char** argv) {
    const Options options = parse(argc, argv);
    std::printf("differential: --seed %lu --threads %u%s%s\n", options.run.seed, options.run.threads,
                options.run.free_running ? " --free-running" : "", options.run.with_reference ? "" : " --no-reference");
    std::fflush(stdout);
    if (options.replays) return replay(options);
    return options.fault.empty() ? run_random(options) : find_faults(options);
}
