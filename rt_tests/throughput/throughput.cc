// Measures one workload with whatever allocator is preloaded and prints one JSON line.
//
// The workload runs in short slices of equal operation counts; the line has the median and the minimum over the slices
// of a slice's nanoseconds per operation, so that an interruption of the program spoils one slice, not the result. The
// count is calibrated for slices of about 1 ms and about 0.3 s in all, or given by --operations and --slices, for runs
// that are to do the same each time (instruction counts). Three slices run before the first measured one.
//
// `allocator` in the line is the object that malloc really came from: the dynamic loader merely warns about a library
// that it cannot preload, and the caller would otherwise measure glibc under another name. Between the slices the
// program compares its peak resident memory with --max-rss: a runaway allocator ends the run, not the machine.
#include <dlfcn.h>
#include <getopt.h>
#include <sys/resource.h>
#include <sys/rseq.h>

#include <algorithm>
#include <chrono>
#include <cstring>

#include "workloads.h"

namespace {

using std::chrono::nanoseconds;
using throughput::fail;
using throughput::kWorkloads;
using throughput::Workload;

constexpr nanoseconds kSliceTime = std::chrono::milliseconds(1);
constexpr nanoseconds kTotalTime = std::chrono::milliseconds(300);
constexpr std::uint64_t kMaxSlices = 1000;

struct Options {
    throughput::Settings settings;
    const Workload* workload = nullptr;
    std::uint64_t operations = 0;  // of a slice; 0: calibrate
    std::uint64_t slices = 0;      // 0: as many as kTotalTime allows
    long max_rss_mib = 2048;
};

[[noreturn]] void usage(int status) {
    std::FILE* out = status == 0 ? stdout : stderr;
    std::fputs(
        "usage: throughput [--size BYTES] [--cpu N] [--operations PER_SLICE] [--slices N] [--max-rss MIB] WORKLOAD\n",
        out);
    for (std::size_t i = 0; i < throughput::kWorkloadCount; ++i)
        std::fprintf(out, "  %-10s %s\n", kWorkloads[i].name, kWorkloads[i].summary);
    std::exit(status);
}

std::uint64_t number(const char* text) {
    char* end = nullptr;
    const std::uint64_t value = std::strtoull(text, &end, 10);
    if (*text < '0' || *text > '9' || *end != '\0') usage(2);
    return value;
}

Options parse(int argc, char** argv) {
    static const option kOptions[] = {{"size", required_argument, nullptr, 's'},
                                      {"cpu", required_argument, nullptr, 'c'},
                                      {"operations", required_argument, nullptr, 'o'},
                                      {"slices", required_argument, nullptr, 'n'},
                                      {"max-rss", required_argument, nullptr, 'm'},
                                      {"help", no_argument, nullptr, 'h'},
                                      {}};
    Options options;
    for (int letter; (letter = getopt_long(argc, argv, "", kOptions, nullptr)) != -1;) {
        switch (letter) {
            case 's':
                options.settings.size = number(optarg);
                break;
            case 'c':
                options.settings.cpu = static_cast<int>(number(optarg));
                break;
            case 'o':
                options.operations = number(optarg);
                break;
            case 'n':
                options.slices = number(optarg);
                break;
            case 'm':
                options.max_rss_mib = static_cast<long>(number(optarg));
                break;
            case 'h':
                usage(0);
            default:
                usage(2);
        }
    }
    if (optind != argc - 1 || options.settings.size < sizeof(std::uint64_t)) usage(2);
    for (std::size_t i = 0; i < throughput::kWorkloadCount; ++i) {
        if (std::strcmp(argv[optind], kWorkloads[i].name) == 0) options.workload = &kWorkloads[i];
    }
    if (options.workload == nullptr) usage(2);
    return options;
}

nanoseconds time_of(const Workload& workload, std::uint64_t operations) {
    const auto start = std::chrono::steady_clock::now();
    workload.run(operations);
    return std::chrono::steady_clock::now() - start;
}

// Neither a cold start nor one preemption counts.
nanoseconds best_time_of(const Workload& workload, std::uint64_t operations) {
    return std::min({time_of(workload, operations), time_of(workload, operations), time_of(workload, operations)});
}

void check_memory(long max_rss_mib) {
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    if (usage.ru_maxrss > max_rss_mib * 1024) fail("uses more memory than --max-rss");
}

// Of this program alone: ru_maxrss also remembers the process that called exec.
long peak_rss_kib() {
    std::FILE* status = std::fopen("/proc/self/status", "re");
    if (status == nullptr) fail("cannot read /proc/self/status");
    char line[256];
    long peak = -1;
    while (std::fgets(line, sizeof line, status) != nullptr) std::sscanf(line, "VmHWM: %ld kB", &peak);
    std::fclose(status);
    return peak;
}

const char* object_of_malloc() {
    Dl_info info{};
    if (dladdr(reinterpret_cast<void*>(&std::malloc), &info) == 0) fail("cannot tell where malloc comes from");
    return info.dli_fname;
}

}  // namespace

int main(int argc, char** argv) {
    static double ns_per_operation[kMaxSlices];
    const Options options = parse(argc, argv);
    const Workload& workload = *options.workload;
    workload.set_up(options.settings);

    std::uint64_t operations = (options.operations + workload.unit - 1) / workload.unit * workload.unit;
    const bool calibrate = operations == 0;
    if (calibrate) operations = workload.unit;
    nanoseconds slice_time = best_time_of(workload, operations);
    while (calibrate && slice_time < kSliceTime) {
        check_memory(options.max_rss_mib);
        operations *= 2;
        slice_time = best_time_of(workload, operations);
    }
    std::uint64_t slices = options.slices;
    if (slices == 0) slices = kTotalTime / std::max(slice_time, nanoseconds(1));
    slices = std::clamp(slices, std::uint64_t{1}, kMaxSlices);
    for (std::uint64_t i = 0; i < slices; ++i) {
        ns_per_operation[i] =
            static_cast<double>(time_of(workload, operations).count()) / static_cast<double>(operations);
        check_memory(options.max_rss_mib);
    }
    workload.tear_down();

    double* const median = ns_per_operation + slices / 2;
    std::nth_element(ns_per_operation, median, ns_per_operation + slices);
    std::printf(
        "{\"workload\": \"%s\", \"size\": %zu, \"ns\": %.3f, \"ns_min\": %.3f, \"operations\": %lu, \"slices\": %lu, "
        "\"max_rss_kib\": %ld, \"allocator\": \"%s\", \"rseq_registered\": %s}\n",
        workload.name, options.settings.size, *median, *std::min_element(ns_per_operation, ns_per_operation + slices),
        operations * slices, slices, peak_rss_kib(), object_of_malloc(), __rseq_size != 0 ? "true" : "false");
}
