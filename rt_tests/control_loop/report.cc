#include "report.h"

#include <cinttypes>
#include <cstdio>
#include <cstring>
#include <vector>

#include "json.h"

namespace {

constexpr const char* kVerdictWords[] = {"OK", "COULD NOT RUN", "HUNG", "CRASHED", "CORRUPTED", "OUT OF MEMORY"};
constexpr const char* kContextNames[kContexts] = {"signal handlers", "loop", "logger"};
constexpr const char* kContextKeys[kContexts] = {"handler", "loop", "logger"};

uint64_t sum(const SharedPage& page, std::atomic<uint64_t> Counters::*counter) {
    uint64_t total = 0;
    for (const Counters& counters : page.counters) total += (counters.*counter).load();
    return total;
}

double median_us(const Latency& latency) {
    std::vector<uint32_t> samples(std::min<uint64_t>(latency.count.load(), Latency::kKept));
    if (samples.empty()) return 0;
    for (size_t i = 0; i < samples.size(); ++i) samples[i] = latency.kept_ns[i].load();
    const auto middle = samples.begin() + static_cast<std::ptrdiff_t>(samples.size() / 2);
    std::nth_element(samples.begin(), middle, samples.end());
    return *middle * 1e-3;
}

double worst_us(const Latency& latency) { return static_cast<double>(latency.worst_ns.load()) * 1e-3; }

template <typename... Arguments>
std::string format(const char* how, Arguments... arguments) {
    char text[1024];
    std::snprintf(text, sizeof text, how, arguments...);
    return text;
}

void print_latency(const char* name, const Latency& latency) {
    std::printf("  %-28s %12.1f %12.2f %12" PRIu64 "\n", name, worst_us(latency), median_us(latency),
                latency.count.load());
}

std::string json_latency(const char* key, const Latency& latency) {
    return format("  \"%s\": {\"worst_us\": %.3f, \"median_us\": %.3f, \"samples\": %" PRIu64 "},\n", key,
                  worst_us(latency), median_us(latency), latency.count.load());
}

}  // namespace

Judgement judge(const SharedPage& page, const Outcome& outcome) {
    const uint64_t corrupted = sum(page, &Counters::corrupted);
    const uint64_t checked = sum(page, &Counters::checked);
    const uint64_t sent = page.records_sent.load();
    const uint64_t received = page.records_received.load();
    const std::string before = corrupted == 0 ? "" : format("; %" PRIu64 " blocks were corrupted before", corrupted);
    switch (outcome.ending) {
        case Ending::kHung:
            return {Verdict::kHung, outcome.text + format(", %.1f s after the start", outcome.seconds) + before};
        case Ending::kSignalled:
            return {Verdict::kCrashed,
                    format("signal %d (%s) after %.1f s", outcome.number, strsignal(outcome.number), outcome.seconds) +
                        before};
        case Ending::kExited:
            return {Verdict::kCouldNotRun, format("exit status %d", outcome.number)};
        case Ending::kFinished:
            break;
    }
    if (corrupted != 0) {
        return {
            Verdict::kCorrupted,
            format("%" PRIu64 " of %" PRIu64 " blocks did not hold what their owner had written", corrupted, checked)};
    }
    if (sent != received) {
        return {Verdict::kCorrupted, format("%" PRIu64 " records were queued, %" PRIu64 " arrived", sent, received)};
    }
    const uint64_t failed = sum(page, &Counters::failed);
    if (failed != 0) return {Verdict::kOutOfMemory, format("%" PRIu64 " allocations returned NULL", failed)};
    const uint64_t in_handlers = page.counters[kInHandler].allocations.load();
    if (in_handlers == 0 || page.handler_runs_inside_allocator.load() == 0) {
        return {Verdict::kCouldNotRun, "no signal arrived inside the allocator: nothing was shown"};
    }
    return {Verdict::kOk, format("%.1f s, %" PRIu64 " allocations in signal handlers, %" PRIu64
                                 " blocks checked, none corrupted, no hang",
                                 outcome.seconds, in_handlers, checked)};
}

void print_start(const Options& options, const std::string& allocator) {
    if (options.quiet) return;
    std::printf("malloc is from %s\n", allocator.c_str());
    std::printf("%g s; the loop allocates for %u %% of each %" PRIu64 " us period; two timers signal %" PRIu64
                " us (on average)\nafter their last handler returned: one the loop thread, one the process\n",
                options.duration_s, options.busy_percent, options.interval_us, options.timer_interval_us);
    std::fflush(stdout);
}

void print_result(const Options& options, const SharedPage& page, const Judgement& judgement) {
    if (!options.quiet) {
        if (options.priority > 0 && page.fifo_priority.load() == 0) {
            std::printf("note: SCHED_FIFO was not permitted, the loop ran as SCHED_OTHER\n");
        }
        if (options.lock_memory && !page.memory_locked.load()) std::printf("note: mlockall was not permitted\n");
        std::printf("\n  %-28s %12s %12s %12s %12s %12s\n", "in", "allocations", "frees", "failed", "checked",
                    "corrupted");
        for (int context = 0; context < kContexts; ++context) {
            const Counters& counters = page.counters[context];
            std::printf("  %-28s %12" PRIu64 " %12" PRIu64 " %12" PRIu64 " %12" PRIu64 " %12" PRIu64 "\n",
                        kContextNames[context], counters.allocations.load(), counters.frees.load(),
                        counters.failed.load(), counters.checked.load(), counters.corrupted.load());
        }
        std::printf("\n  %-28s %12s %12s %12s\n", "latency", "worst us", "median us", "samples");
        print_latency("wake-up of the loop", page.wake_up);
        print_latency("malloc in signal handlers", page.malloc_in_handler);
        print_latency("malloc in the loop", page.malloc_in_loop);
        std::printf("\n  %" PRIu64 " periods, %" PRIu64 " missed; %" PRIu64 " + %" PRIu64 " handler runs, %" PRIu64
                    " of them interrupted malloc or free\n\n",
                    page.periods.load(), page.missed_periods.load(), page.handler_runs[kToLoopThread].load(),
                    page.handler_runs[kToProcess].load(), page.handler_runs_inside_allocator.load());
    }
    const std::string label = options.label.empty() ? "" : options.label + ": ";
    std::printf("VERDICT: %s%s: %s\n", label.c_str(), kVerdictWords[static_cast<int>(judgement.verdict)],
                judgement.sentence.c_str());
    std::fflush(stdout);
}

bool write_json(const Options& options, const std::string& allocator, const SharedPage& page, const Outcome& outcome,
                const Judgement& judgement) {
    std::string json = "{\n";
    json += "  \"label\": " + quoted(options.label) + ",\n  \"allocator\": " + quoted(allocator) + ",\n";
    json += "  \"verdict\": " + quoted(kVerdictWords[static_cast<int>(judgement.verdict)]) + ",\n";
    json += "  \"sentence\": " + quoted(judgement.sentence) + ",\n";
    json += format("  \"seconds\": %.3f,\n  \"sched_fifo_priority\": %d,\n  \"periods\": %" PRIu64
                   ",\n  \"missed_periods\": %" PRIu64 ",\n",
                   outcome.seconds, page.fifo_priority.load(), page.periods.load(), page.missed_periods.load());
    for (int context = 0; context < kContexts; ++context) {
        const Counters& counters = page.counters[context];
        json += format("  \"%s\": {\"allocations\": %" PRIu64 ", \"frees\": %" PRIu64 ", \"failed\": %" PRIu64
                       ", \"checked\": %" PRIu64 ", \"corrupted\": %" PRIu64 "},\n",
                       kContextKeys[context], counters.allocations.load(), counters.frees.load(),
                       counters.failed.load(), counters.checked.load(), counters.corrupted.load());
    }
    json += json_latency("wake_up", page.wake_up) + json_latency("malloc_in_handler", page.malloc_in_handler) +
            json_latency("malloc_in_loop", page.malloc_in_loop);
    json += format("  \"handler_runs_inside_allocator\": %" PRIu64 "\n}\n", page.handler_runs_inside_allocator.load());
    FILE* file = std::fopen(options.json_path.c_str(), "we");
    if (file == nullptr) return false;
    const bool written = std::fwrite(json.data(), 1, json.size(), file) == json.size();
    return std::fclose(file) == 0 && written;
}
