// casualties: threads die, are stopped, jump out of handlers and fork at random points inside the allocator, while
// others go on.
//
// Victims work on blocks that cross threads until their mishap strikes (seat.h, keeper.h); survivors do the same and
// must never stand still. Every block is checked (checked.h), and what is in limbo at a mishap is accounted for
// (hands.h); in the end all live blocks are freed and what the mishaps cost is measured against the stated bounds
// (accounts.h). All of it runs in a forked child, watched from outside.
#include <getopt.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>

#include "keeper.h"
#include "process.h"
#include "watched.h"

namespace {

using namespace stress;

constexpr const char* kKinds[] = {"deaths", "stops", "jumps", "forks", "mixed"};

[[noreturn]] void usage(int status) {
    std::printf(
        "usage: casualties --kind deaths|stops|jumps|forks|mixed [--count MISHAPS | --seconds N] [--threads VICTIMS]\n"
        "                  [--seed N] [--max-mib RESIDENT] [--max-mean-kib LOST] [--keep-hung]\n"
        "  --count         of mishaps; of stops: of rounds, in each of which all victims are stopped\n"
        "  --threads       victims at a time, 1 to %u; 64 for stops, else 4\n"
        "  --max-mean-kib  resident memory lost per mishap: more fails, even within the stated bounds\n"
        "  --keep-hung     do not end a process that hangs: for a debugger\n",
        kMaxVictims);
    std::exit(status);
}

Kind parse_kind(const char* text) {
    for (unsigned kind = 0; kind < std::size(kKinds); ++kind) {
        if (std::strcmp(text, kKinds[kind]) == 0) return static_cast<Kind>(kind);
    }
    std::fprintf(stderr, "casualties: no such kind: %s\n", text);
    usage(64);
}

Options parse(int argc, char** argv) {
    static const option kLong[] = {
        {"kind", required_argument, nullptr, 'k'},
        {"count", required_argument, nullptr, 'c'},
        {"seconds", required_argument, nullptr, 'n'},
        {"threads", required_argument, nullptr, 't'},
        {"seed", required_argument, nullptr, 's'},
        {"max-mib", required_argument, nullptr, 'm'},
        {"max-mean-kib", required_argument, nullptr, 'l'},
        {"keep-hung", no_argument, nullptr, 'K'},
        {"help", no_argument, nullptr, 'h'},
        {nullptr, 0, nullptr, 0},
    };
    Options options{.seed = fresh_seed(), .threads = 0};
    bool has_kind = false;
    for (int opt; (opt = getopt_long(argc, argv, "", kLong, nullptr)) != -1;) {
        switch (opt) {
            case 'k':
                options.kind = parse_kind(optarg);
                has_kind = true;
                break;
            case 'c':
                options.count = parse_number("--count", optarg);
                break;
            case 'n':
                options.seconds = parse_number("--seconds", optarg);
                break;
            case 't':
                options.threads = parse_number("--threads", optarg);
                break;
            case 's':
                options.seed = parse_number("--seed", optarg);
                break;
            case 'm':
                options.max_mib = parse_number("--max-mib", optarg);
                break;
            case 'l':
                options.max_mean_kib = parse_number("--max-mean-kib", optarg);
                break;
            case 'K':
                options.keep_hung = true;
                break;
            default:
                usage(opt == 'h' ? 0 : 64);
        }
    }
    if (!has_kind || optind != argc) usage(64);
    if (options.threads == 0) options.threads = options.kind == Kind::kStops ? 64 : 4;
    if (options.threads > kMaxVictims || options.max_mib < 64) usage(64);
    if (options.count == 0 && options.seconds == 0) options.count = options.kind == Kind::kStops ? 3 : 2000;
    return options;
}

int run_once(const Options& options, void (*body)(const void*)) {
    const Watched watched{.program = kProgram,
                          .what = kKinds[static_cast<unsigned>(options.kind)],
                          .seed = options.seed,
                          .max_resident = options.max_mib << 20,
                          .runners = options.runners,
                          .count = kSeats,
                          .keep_hung = options.keep_hung};
    return run_watched(watched, body, &options);
}

// Who is stopped stays so: each round has a process of its own.
int run_rounds_of_stops(Options options) {
    const time_t began = time(nullptr);
    for (uint64_t round = 0;; ++round) {
        const bool out_of_time =
            options.seconds != 0 && static_cast<uint64_t>(time(nullptr) - began) >= options.seconds;
        if (out_of_time || (options.count != 0 && round == options.count)) return 0;
        if (const int status = run_once(options, run_stops)) {
            std::fprintf(stderr, "%s: --kind stops --count 1 --threads %lu --seed %lu: exit status %d\n", kProgram,
                         options.threads, options.seed, status);
            return status;
        }
        ++options.seed;
    }
}

}  // namespace

int main(int argc, char** argv) {
    Options options = parse(argc, argv);
    const char* kind = kKinds[static_cast<unsigned>(options.kind)];
    std::printf("%s: --kind %s --count %lu --seconds %lu --threads %lu --max-mib %lu --seed %lu\n", kProgram, kind,
                options.count, options.seconds, options.threads, options.max_mib, options.seed);
    std::fflush(stdout);
    options.runners = map_runners(kSeats);
    return options.kind == Kind::kStops ? run_rounds_of_stops(options) : run_once(options, run_casualties);
}
