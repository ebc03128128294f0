#include "options.h"

#include <getopt.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>

namespace {

constexpr char kUsage[] =
    R"(usage: control_loop [options]

A periodic real-time loop, a signal handler and a logger thread that all call malloc() and free(). It shows whether the
allocator it runs with stands being called from a signal handler; choose that one with LD_PRELOAD.

  -i, --interval=US        period of the loop in microseconds (1000)
  -t, --timer-interval=US  mean time between the end of a timer's signal handler and its next signal (40)
  -p, --priority=N         SCHED_FIFO priority of the loop, 0 for SCHED_OTHER (80)
  -b, --busy=PERCENT       part of each period that the loop spends with allocating (50)
  -D, --duration=S         seconds, or with a suffix m or h (10)
  -m, --mlockall           lock all memory, now and later
      --hang-after=S       without progress for so long, the program counts as hung (2)
      --label=NAME         name of the allocator in the report
      --expect-allocator=TEXT  refuse to run where malloc's library has no TEXT in its name
      --expect=VERDICTS    exit with 0 where the verdict is one of these, else with 6: ok, hung, crashed, corrupted,
                           null; separated by commas
      --json=FILE          write the result to FILE too
  -q, --quiet              print the verdict only
  -h, --help

exit status: 0 ok, 1 could not run, 2 hung, 3 crashed, 4 memory was corrupted or lost, 5 malloc returned NULL
)";

[[noreturn]] void usage_error(const char* what, const char* value) {
    std::fprintf(stderr, "control_loop: %s: %s\n%s", what, value, kUsage);
    std::exit(1);
}

double number(const char* what, const char* text, double least, double most) {
    char* end = nullptr;
    const double value = std::strtod(text, &end);
    if (end == text || *end != '\0' || !(value >= least && value <= most)) usage_error(what, text);
    return value;
}

double seconds(const char* text) {
    std::string digits(text);
    double unit = 1;
    if (!digits.empty() && digits.back() == 's') digits.pop_back();
    if (!digits.empty() && digits.back() == 'm') unit = 60, digits.pop_back();
    if (!digits.empty() && digits.back() == 'h') unit = 3600, digits.pop_back();
    return unit * number("duration", digits.c_str(), 0.1, 1e6);
}

unsigned verdicts(char* list) {
    char ok[] = "ok", hung[] = "hung", crashed[] = "crashed", corrupted[] = "corrupted", null[] = "null";
    char* const words[] = {ok, hung, crashed, corrupted, null, nullptr};
    constexpr Verdict kVerdicts[] = {Verdict::kOk, Verdict::kHung, Verdict::kCrashed, Verdict::kCorrupted,
                                     Verdict::kOutOfMemory};
    unsigned set = 0;
    for (char* value = nullptr; *list != '\0';) {
        const int word = getsubopt(&list, words, &value);
        if (word < 0) usage_error("expect", value);
        set |= bit_of(kVerdicts[word]);
    }
    return set;
}

}  // namespace

Options parse_options(int argc, char** argv) {
    enum Long { kHangAfter = 256, kLabel, kExpectAllocator, kExpect, kJson };
    constexpr option kLong[] = {{"interval", required_argument, nullptr, 'i'},
                                {"timer-interval", required_argument, nullptr, 't'},
                                {"priority", required_argument, nullptr, 'p'},
                                {"busy", required_argument, nullptr, 'b'},
                                {"duration", required_argument, nullptr, 'D'},
                                {"mlockall", no_argument, nullptr, 'm'},
                                {"hang-after", required_argument, nullptr, kHangAfter},
                                {"label", required_argument, nullptr, kLabel},
                                {"expect-allocator", required_argument, nullptr, kExpectAllocator},
                                {"expect", required_argument, nullptr, kExpect},
                                {"json", required_argument, nullptr, kJson},
                                {"quiet", no_argument, nullptr, 'q'},
                                {"help", no_argument, nullptr, 'h'},
                                {}};
    Options options;
    for (int letter; (letter = getopt_long(argc, argv, "i:t:p:b:D:mqh", kLong, nullptr)) != -1;) {
        switch (letter) {
            case 'i':
                options.interval_us = static_cast<uint64_t>(number("interval", optarg, 50, 1e6));
                break;
            case 't':
                options.timer_interval_us = static_cast<uint64_t>(number("timer interval", optarg, 2, 1e6));
                break;
            case 'p':
                options.priority = static_cast<int>(number("priority", optarg, 0, 98));
                break;
            case 'b':
                options.busy_percent = static_cast<unsigned>(number("busy", optarg, 1, 90));
                break;
            case 'D':
                options.duration_s = seconds(optarg);
                break;
            case 'm':
                options.lock_memory = true;
                break;
            case 'q':
                options.quiet = true;
                break;
            case kHangAfter:
                options.hang_after_s = number("hang-after", optarg, 0.2, 3600);
                break;
            case kLabel:
                options.label = optarg;
                break;
            case kExpectAllocator:
                options.expect_allocator = optarg;
                break;
            case kExpect:
                options.expected_verdicts = verdicts(optarg);
                break;
            case kJson:
                options.json_path = optarg;
                break;
            case 'h':
                std::fputs(kUsage, stdout);
                std::exit(0);
            default:
                std::fputs(kUsage, stderr);
                std::exit(1);
        }
    }
    if (optind < argc) usage_error("unexpected argument", argv[optind]);
    return options;
}
