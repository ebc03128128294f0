#include "report.h"

#include <cstdio>
#include <cstring>

#include "json.h"

namespace {

using std::to_string;

std::string us(uint64_t ns) {
    char text[32];
    std::snprintf(text, sizeof text, "%.1f", static_cast<double>(ns) * 1e-3);
    return text;
}

Judgement judge_finished(const SharedPage& page) {
    const Measurement& high = page.measurement;
    if (page.corrupted.load() != 0) {
        return {Verdict::kCorrupted, to_string(page.corrupted.load()) + " blocks did not hold what was written"};
    }
    if (page.failed.load() != 0) return {Verdict::kCouldNotRun, to_string(page.failed.load()) + " mallocs gave NULL"};
    if (high.waited.load() != 0) {
        return {Verdict::kWaited, to_string(high.waited.load()) + " calls waited, the longest for " +
                                      us(high.worst_wait_ns.load()) + " us of the other threads' processor time"};
    }
    if (high.wake_ups_inside.load() == 0) {
        return {Verdict::kCouldNotRun, "the low thread was never preempted inside the allocator: nothing was shown"};
    }
    return {Verdict::kOk, "no call waited"};
}

class Json {
  public:
    Json& text(const char* key, const std::string& value) { return put(key, quoted(value)); }
    Json& count(const char* key, uint64_t value) { return put(key, to_string(value)); }
    Json& time(const char* key, uint64_t ns) { return put(key, us(ns)); }
    std::string line() const { return '{' + line_ + '}'; }

  private:
    Json& put(const char* key, const std::string& value) {
        line_ += (line_.empty() ? "\"" : ", \"") + std::string(key) + "\": " + value;
        return *this;
    }
    std::string line_;
};

}  // namespace

Judgement judge(const SharedPage& page, const Outcome& outcome) {
    switch (outcome.ending) {
        case Ending::kLivelock:
            return {Verdict::kLivelock, outcome.text};
        case Ending::kHung:
            return {Verdict::kHung, outcome.text};
        case Ending::kSignalled:
            return {Verdict::kCrashed, "signal " + to_string(outcome.number) + ", " + strsignal(outcome.number)};
        case Ending::kExited:
            return {Verdict::kCouldNotRun, "exit status " + to_string(outcome.number)};
        case Ending::kFinished:
            break;
    }
    return judge_finished(page);
}

void print_json(const Options& options, const std::string& allocator, const SharedPage& page,
                const Judgement& judgement) {
    const Measurement& high = page.measurement;
    Json json;
    json.text("outcome", kVerdictWords[static_cast<int>(judgement.verdict)]).text("sentence", judgement.sentence);
    json.text("allocator", allocator).text("preempt", kPreemptionWords[static_cast<int>(options.preemption)]);
    json.count("seed", options.seed).count("hog_us", options.hog_us);
    json.count("wake_ups", high.wake_ups.load()).count("wake_ups_inside", high.wake_ups_inside.load());
    json.count("mallocs", high.mallocs.load()).count("frees", high.frees.load());
    json.count("waited", high.waited.load()).time("worst_wait_us", high.worst_wait_ns.load());
    json.count("sleeps", high.sleeps.load()).count("preempted", high.preempted.load());
    json.count("faults", high.faults.load()).time("median_us", high.ns.quantile(0.5));
    json.time("p999_us", high.ns.quantile(0.999)).time("worst_us", high.worst_ns.load());
    json.time("worst_nothing_us", high.worst_nothing_ns.load());
    std::printf("%s\n", json.line().c_str());
}
