// churn: threads allocate, resize, exchange and free blocks at random, every block being checked (checked.h).
//
// Each seat is taken by one thread after the other, so blocks outlive the threads that allocated them; exchanges and
// parcels make frees remote; bursts empty whole spans in each order. At the end all is freed and the shadow map must be
// empty. A failure names the seed: `churn --seed N` repeats each thread's sequence.
//
// Memory: live blocks are bounded by --megabytes. Resident memory beyond kRssFactor times that plus kRssSlack fails the
// run: freed memory is not used again.
#include <getopt.h>
#include <rtspan/rtspan.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <thread>
#include <vector>

#include "exchange.h"
#include "process.h"
#include "report.h"
#include "sanitizer.h"
#include "shadow_map.h"
#include "worker.h"

namespace {

using namespace stress;
using std::chrono::steady_clock;

constexpr size_t kMiB = size_t{1} << 20;
constexpr size_t kRssFactor = 3;
constexpr size_t kRssSlack = 128 * kMiB;

struct Options {
    uint64_t threads = 4;
    uint64_t operations = 400'000;
    uint64_t operations_per_life = 10'000;
    uint64_t megabytes = 256;
    uint64_t seed = fresh_seed();
    bool exact = false;
};

Options parse(int argc, char** argv) {
    static const option kLong[] = {
        {"threads", required_argument, nullptr, 't'},
        {"operations", required_argument, nullptr, 'o'},
        {"life", required_argument, nullptr, 'l'},
        {"seed", required_argument, nullptr, 's'},
        {"megabytes", required_argument, nullptr, 'm'},
        {"exact", no_argument, nullptr, 'e'},
        {"help", no_argument, nullptr, 'h'},
        {nullptr, 0, nullptr, 0},
    };
    Options options;
    for (int opt; (opt = getopt_long(argc, argv, "", kLong, nullptr)) != -1;) {
        switch (opt) {
            case 't':
                options.threads = parse_number("--threads", optarg);
                break;
            case 'o':
                options.operations = parse_number("--operations", optarg);
                break;
            case 'l':
                options.operations_per_life = parse_number("--life", optarg);
                break;
            case 's':
                options.seed = parse_number("--seed", optarg);
                break;
            case 'm':
                options.megabytes = parse_number("--megabytes", optarg);
                break;
            case 'e':
                options.exact = true;
                break;
            default:
                std::printf(
                    "usage: churn [--threads N] [--operations PER_THREAD] [--life OPERATIONS] [--seed N] "
                    "[--megabytes LIVE] [--exact]\n"
                    "  --life   operations of one thread before another one takes its seat\n"
                    "  --exact  at the end, mallinfo2 must count no byte in use\n");
                std::exit(opt == 'h' ? 0 : 64);
        }
    }
    if (options.threads == 0 || options.threads > kMaxThreads || options.megabytes < 16 ||
        options.operations_per_life == 0) {
        std::fprintf(stderr, "churn: 1 to %u threads, 16 megabytes or more, a life of 1 or more\n", kMaxThreads);
        std::exit(64);
    }
    return options;
}

// Watches the process's memory until the workers are done.
class MemoryWatch {
  public:
    explicit MemoryWatch(size_t limit) : thread_([this, limit] { watch(limit); }) {}
    ~MemoryWatch() {
        done_.store(true, std::memory_order_relaxed);
        thread_.join();
    }

  private:
    void watch(size_t limit) {
        while (!done_.load(std::memory_order_relaxed)) {
            const size_t resident = resident_bytes(getpid());
            if (resident > limit) {
                fail(Line() << "churn: FAILED: " << resident / kMiB << " MiB resident, limit " << limit / kMiB);
            }
            std::this_thread::sleep_for(std::chrono::milliseconds(20));
        }
    }

    std::atomic<bool> done_{false};
    std::thread thread_;
};

void run_seat(Worker& worker, uint64_t operations, uint64_t operations_per_life) {
    while (operations != 0) {
        const uint64_t life = std::min(operations, operations_per_life);
        std::thread([&worker, life] { worker.run(life); }).join();
        operations -= life;
    }
}

// malloc_info and malloc_stats, which are for people to read: they come back, say something and refuse what they
// should.
void check_reports() {
    char* text = nullptr;
    size_t length = 0;
    FILE* stream = open_memstream(&text, &length);
    const int good = rtspan_malloc_info(0, stream);
    const int bad = rtspan_malloc_info(1, stream);
    std::fclose(stream);
    if (good != 0 || bad != -1 || length == 0)
        fail(Line() << "churn: FAILED: malloc_info gave " << good << ", " << bad);
    std::free(text);
    rtspan_malloc_stats();
}

constinit Exchange exchange;

}  // namespace

int main(int argc, char** argv) {
    const Options options = parse(argc, argv);
    std::printf("churn: --threads %lu --operations %lu --life %lu --megabytes %lu --seed %lu\n", options.threads,
                options.operations, options.operations_per_life, options.megabytes, options.seed);
    std::fflush(stdout);

    // Of the live bytes, half is in the workers' hands, a quarter in slots, a quarter in parcels.
    const size_t live = options.megabytes * kMiB;
    std::vector<std::unique_ptr<Worker>> workers;
    for (unsigned seat = 0; seat < options.threads; ++seat) {
        workers.push_back(std::make_unique<Worker>(exchange, options.seed, seat, live / 2 / options.threads,
                                                   live / 4 / Exchange::kSlots,
                                                   live / 4 / (Exchange::kBerths + options.threads)));
    }

    const auto start = steady_clock::now();
    {
        const size_t no_limit = SIZE_MAX;
        const MemoryWatch watch(kSanitizer ? no_limit : kRssFactor * live + kRssSlack);
        std::vector<std::thread> seats;
        for (auto& worker : workers) {
            seats.emplace_back(run_seat, std::ref(*worker), options.operations, options.operations_per_life);
        }
        for (auto& seat : seats) seat.join();
    }
    const std::chrono::duration<double> elapsed = steady_clock::now() - start;

    Worker::Counts sum;
    for (auto& worker : workers) {
        worker->free_all();
        sum.allocations += worker->counts().allocations;
        sum.frees += worker->counts().frees;
        sum.reallocations += worker->counts().reallocations;
        sum.exchanged += worker->counts().exchanged;
        sum.bursts += worker->counts().bursts;
    }
    if (const void* marked = shadow_map.find_marked()) {
        fail(Line() << "churn: FAILED: all is freed, but the shadow map has a live block at " << marked);
    }
    if (sum.allocations != sum.frees) {
        fail(Line() << "churn: FAILED: " << sum.allocations << " blocks allocated, " << sum.frees << " freed");
    }
    check_reports();
    const size_t in_use = rtspan_mallinfo2().uordblks;
    if (options.exact && in_use != 0) {
        fail(Line() << "churn: FAILED: all is freed, but mallinfo2 counts " << in_use << " bytes in use");
    }
    const double calls = static_cast<double>(sum.allocations + sum.frees + sum.reallocations);
    std::printf(
        "churn: passed: %lu allocations, %lu reallocations, %lu blocks exchanged, %lu bursts; %.0f calls/s with all "
        "checks; peak RSS %zu MiB; mallinfo2 says %zu bytes in use\n",
        sum.allocations, sum.reallocations, sum.exchanged, sum.bursts, calls / elapsed.count(),
        peak_resident_bytes() / kMiB, in_use);
    return 0;
}
