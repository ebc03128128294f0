// storm: threads and the signal handlers that interrupt them allocate, resize, exchange and free the same blocks, every
// block being checked (checked.h).
//
// Four signals, each with its own timer per thread, nest to any depth up to --depth; a tormentor thread sends more of
// them (worker.h). The stormed process is a forked child. Its monitor calls no allocator and shares no lock with it: a
// thread whose main code makes no step for kHungSeconds, a crash, a failed check or too much memory fail the run
// (monitor.h). A run in which no handler found the code below it inside the allocator has shown nothing and fails too.
//
// --first-call instead forks many short-lived children, each stormed from before its first call on (first_call.cc).
#include <getopt.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "monitor.h"
#include "process.h"
#include "report.h"
#include "stepping.h"
#include "storm.h"

namespace {

using namespace stress;

constexpr size_t kMiB = size_t{1} << 20;

struct Options {
    StormOptions storm{.seed = fresh_seed()};
    bool first_call = false;
    uint64_t first_child = 0;
};

[[noreturn]] void usage(int status) {
    std::printf(
        "usage: storm [--seconds N] [--threads N] [--seed N] [--max-mib RESIDENT] [--depth N] [--exact]\n"
        "       storm --first-call [--children N] [--first-child N] [--seed N] [--exact]\n"
        "  --depth        handlers on one stack; beyond %u, a handler may be interrupted by its own signal\n"
        "  --exact        at the end, mallinfo2 must count no byte in use\n"
        "  --first-child  the number of the first child: with --children 1 and the seed, repeats a child that failed\n",
        kSignals);
    std::exit(status);
}

Options parse(int argc, char** argv) {
    static const option kLong[] = {
        {"seconds", required_argument, nullptr, 'n'},
        {"threads", required_argument, nullptr, 't'},
        {"seed", required_argument, nullptr, 's'},
        {"max-mib", required_argument, nullptr, 'm'},
        {"depth", required_argument, nullptr, 'd'},
        {"first-call", no_argument, nullptr, 'f'},
        {"children", required_argument, nullptr, 'c'},
        {"first-child", required_argument, nullptr, 'k'},
        {"exact", no_argument, nullptr, 'e'},
        {"help", no_argument, nullptr, 'h'},
        {nullptr, 0, nullptr, 0},
    };
    Options options;
    StormOptions& storm = options.storm;
    for (int opt; (opt = getopt_long(argc, argv, "", kLong, nullptr)) != -1;) {
        switch (opt) {
            case 'n':
                storm.seconds = parse_number("--seconds", optarg);
                break;
            case 't':
                storm.threads = parse_number("--threads", optarg);
                break;
            case 's':
                storm.seed = parse_number("--seed", optarg);
                break;
            case 'm':
                storm.max_mib = parse_number("--max-mib", optarg);
                break;
            case 'd':
                storm.depth = parse_number("--depth", optarg);
                break;
            case 'f':
                options.first_call = true;
                break;
            case 'c':
                storm.children = parse_number("--children", optarg);
                break;
            case 'k':
                options.first_child = parse_number("--first-child", optarg);
                break;
            case 'e':
                storm.exact = true;
                break;
            default:
                usage(opt == 'h' ? 0 : 64);
        }
    }
    const bool in_range = storm.threads >= 1 && storm.threads <= kMaxThreads && storm.depth >= 1 &&
                          storm.depth <= kMaxDepth && storm.seconds >= 1 && storm.children >= 1 && storm.max_mib >= 64;
    if (!in_range || optind != argc) usage(64);
    return options;
}

// What the storms so far have done, for the last line and for the question whether they have shown anything.
struct Sums {
    uint64_t steps = 0, lives = 0, inside_allocator = 0, inside_first_call = 0;
    std::array<uint64_t, kMaxDepth + 1> handlers{};

    void add(const SharedPage& page) {
        for (const ThreadReport& report : page.threads) {
            steps += report.steps.load(std::memory_order_relaxed);
            lives += report.lives.load(std::memory_order_relaxed);
            inside_allocator += report.inside_allocator.load(std::memory_order_relaxed);
            inside_first_call += report.inside_first_call.load(std::memory_order_relaxed);
            for (unsigned d = 1; d <= kMaxDepth; ++d) {
                handlers[d] += report.handlers_at_depth[d].load(std::memory_order_relaxed);
            }
        }
    }

    // `aimed_at`: how many handlers came where they should; 0 fails the run.
    int conclude(uint64_t aimed_at) const {
        std::printf("storm: %lu steps in %lu threads; handlers at depth", steps, lives);
        for (unsigned d = 1; d <= kMaxDepth && handlers[d] != 0; ++d) std::printf(" %u: %lu", d, handlers[d]);
        std::printf("; %lu of them interrupted the allocator, %lu a first call\n", inside_allocator, inside_first_call);
        std::printf("storm: %s\n", aimed_at != 0 ? "passed" : "FAILED: no handler came where it was aimed at");
        return aimed_at != 0 ? 0 : kExitFailed;
    }
};

int run_long(const StormOptions& storm, SharedPage& page) {
    std::printf("storm: --seconds %lu --threads %lu --depth %lu --max-mib %lu --seed %lu\n", storm.seconds,
                storm.threads, storm.depth, storm.max_mib, storm.seed);
    std::fflush(stdout);
    const Watch watch{.threads = static_cast<unsigned>(storm.threads),
                      .max_resident = storm.max_mib * kMiB,
                      .seed = storm.seed,
                      .what = "storm"};
    const StormArguments arguments{.options = &storm, .page = &page};
    if (const int status = run_watched(page, watch, run_storm, &arguments)) return status;
    Sums sums;
    sums.add(page);
    return sums.conclude(sums.inside_allocator);
}

int run_first_calls(const Options& options, SharedPage& page) {
    const StormOptions& storm = options.storm;
    std::printf("storm: --first-call --children %lu --first-child %lu --seed %lu\n", storm.children,
                options.first_child, storm.seed);
    std::fflush(stdout);
    StormArguments arguments{.options = &storm, .page = &page};
    std::string what;
    const auto run = [&](void (*body)(const void*)) {
        const Watch watch{.threads = kFirstCallThreads,
                          .max_resident = storm.max_mib * kMiB,
                          .seed = storm.seed,
                          .what = what.c_str()};
        return run_watched(page, watch, body, &arguments);
    };
    if (kCanStep) {
        what = "first call: every instruction stepped";
        for (unsigned kind : {0, 1}) {
            if (int status = run(kind == 0 ? count_instructions_of_process : count_instructions_of_thread))
                return status;
            arguments.instructions[kind] = page.instructions.load(std::memory_order_relaxed);
        }
        std::printf("storm: a first malloc and free take %lu instructions in a new process, %lu in a new thread\n",
                    arguments.instructions[0], arguments.instructions[1]);
        std::fflush(stdout);
    }
    Sums sums;
    for (uint64_t i = 0; i < storm.children; ++i) {
        arguments.child = options.first_child + i;
        what = first_call_case(arguments.child) + (", --first-child " + std::to_string(arguments.child));
        if (const int status = run(run_first_call)) {
            std::fprintf(stderr, "storm: %s, seed %lu: exit status %d\n", what.c_str(), storm.seed, status);
            return status;
        }
        sums.add(page);
    }
    // Children that are repeated alone may miss.
    const bool may_miss = storm.children < 24;
    return sums.conclude(may_miss ? 1 : sums.inside_first_call);
}

}  // namespace

int main(int argc, char** argv) {
    const Options options = parse(argc, argv);
    SharedPage& page = map_shared_page();
    return options.first_call ? run_first_calls(options, page) : run_long(options.storm, page);
}
