// The logger thread: takes records off the queue, checks them, formats a line about each, keeps some for a while,
// passes some back to the handlers and frees the rest. It frees what other threads and their handlers allocated.
#include <time.h>

#include <cinttypes>
#include <cstdio>
#include <utility>

#include "record.h"
#include "workload.h"

namespace {

using LoggerMemory = Memory<kInLogger>;

constexpr size_t kKept = 128;
constexpr size_t kLines = 32;
std::atomic<bool> stopped;

struct Logger {
    std::minstd_rand random{1};
    Record* kept[kKept] = {};
    char* lines[kLines] = {};

    void retire(Record* record) {
        if (record != nullptr && check_record<kInLogger>(record)) LoggerMemory::release(record);
    }

    void format(const Record* record) {
        char*& line = lines[random() % kLines];
        LoggerMemory::release(line);
        const size_t length = 40 + random() % 400;
        line = static_cast<char*>(LoggerMemory::allocate(length));
        if (line == nullptr) return;
        std::snprintf(line, length, "record %" PRIu64 ", %" PRIu64 " bytes", record->sequence, record->size);
    }

    void take(Record* record) {
        if (!check_record<kInLogger>(record)) return;
        format(record);
        switch (random() % 4) {
            case 0:
                retire(std::exchange(kept[random() % kKept], record));
                break;
            case 1: {
                auto& place = queue->passed_back[random() % kPassedBack];
                retire(place.exchange(record, std::memory_order_acq_rel));
                break;
            }
            default:
                LoggerMemory::release(record);
                break;
        }
    }

    void clear() {
        for (Record* record : kept) retire(record);
        for (auto& place : queue->passed_back) retire(place.exchange(nullptr));
        for (char* line : lines) LoggerMemory::release(line);
    }
};

cds_wfcq_node* dequeue() {
    const InCall in_call(Call::kDequeue);
    cds_wfcq_node* node = __cds_wfcq_dequeue_nonblocking(__cds_wfcq_head_cast(&queue->head), &queue->tail);
    return node == CDS_WFCQ_WOULDBLOCK ? nullptr : node;
}

}  // namespace

void stop_logger() { stopped.store(true); }

void run_logger() {
    Logger logger;
    for (;;) {
        const bool last_look = stopped.load();
        beat();
        if (cds_wfcq_node* node = dequeue()) {
            count(page->records_received);
            logger.take(caa_container_of(node, Record, node));
        } else if (last_look) {
            break;
        } else {
            const InCall in_call(Call::kSleep);
            const timespec pause{.tv_sec = 0, .tv_nsec = 100'000};
            nanosleep(&pause, nullptr);
        }
        // A corrupted queue may have become a ring.
        if (last_look && page->records_received.load() > page->records_sent.load()) break;
    }
    logger.clear();
}
