// A telemetry record: allocated in a signal handler (or in the loop), queued for the logger, which checks and frees it
// or passes it back, so that a handler frees or reuses it. The queue is liburcu's wait-free queue, with one dequeuer
// and therefore no lock: enqueue is one exchange and one store, fit for a handler.
#pragma once

#include <urcu/wfcqueue.h>

#include <atomic>

#include "allocation.h"
#include "stamp.h"

struct Record {
    cds_wfcq_node node;
    uint64_t sequence;
    uint64_t size;
    uint64_t header_check;
};

constexpr size_t kMaxInFlight = 512;
constexpr size_t kPassedBack = 64;

struct RecordQueue {
    __cds_wfcq_head head;
    alignas(64) cds_wfcq_tail tail;
    alignas(64) std::atomic<Record*> passed_back[kPassedBack];  // checked; for the handlers to free or reuse
    std::atomic<uint64_t> next_sequence;
};

inline constinit RecordQueue* queue = nullptr;

inline bool queue_is_long() {
    return page->records_sent.load(std::memory_order_relaxed) -
               page->records_received.load(std::memory_order_relaxed) >=
           kMaxInFlight;
}

inline void fill_and_send(Record* record, size_t size) {
    cds_wfcq_node_init(&record->node);
    record->sequence = queue->next_sequence.fetch_add(1, std::memory_order_relaxed);
    record->size = size;
    record->header_check = mix(record->sequence ^ size);
    stamp(record, sizeof(Record), size, record->sequence);
    const InCall in_call(Call::kEnqueue);
    count(page->records_sent);
    cds_wfcq_enqueue(__cds_wfcq_head_cast(&queue->head), &queue->tail, &record->node);
}

// A record with a bad header says nothing about its size: it is counted and must not be touched any more.
template <Context context>
bool check_record(const Record* record) {
    const bool header_intact = record->header_check == mix(record->sequence ^ record->size) &&
                               record->size >= sizeof(Record) && record->size <= kMaxBlock;
    return Memory<context>::check(header_intact && stamped(record, sizeof(Record), record->size, record->sequence));
}
