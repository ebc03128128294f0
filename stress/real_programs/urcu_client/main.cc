// A client of liburcu that checks every node: a resizable hash table (cds_lfht) and a queue (cds_wfcq) whose nodes come
// from malloc in many threads, in signal handlers too with --signals, and are freed by liburcu's reclaimer threads.
//
//     urcu_client OPERATIONS [--signals]
//
// How it finds a broken allocator:
// - A node's bytes follow from its key and number, which no other node has (node.h). Readers, writers, the consumer and
//   the reclaimer check them all: a block handed out twice, or used while free, shows.
// - Each key of the table belongs to one writer, which knows what every operation must find; at the end the whole table
//   is compared with what the writers know. The queue's consumer demands each producer's nodes in order, none missing.
// - Nodes made and nodes freed are counted, and must be equal at the end. The live nodes are bounded (who makes one
//   waits while there are too many), so the resident memory is: freed memory must be used again.
// The threads live for one round, the table for all: much of it was allocated by threads that have died.
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>
#include <urcu.h>
#include <urcu/rculfhash.h>
#include <urcu/wfcqueue.h>

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <vector>

#include "node.h"

namespace {

constexpr int kRounds = 5;
constexpr int kWriters = 2;
constexpr int kProducers = 2;
constexpr int kReaders = 1;
constexpr uint64_t kKeys = 10'000;  // kKeys / kWriters for each writer
constexpr long kMostLive = 20'000;
constexpr long kMostResident = 192 * 1024;  // KiB; the live nodes are some 15 MiB
constexpr long kSignalPeriod = 100'000;     // ns

cds_lfht* table;
__cds_wfcq_head queue_head;
cds_wfcq_tail queue_tail;

void wait_for_reclaimer() {
    while (nodes_made.load() - nodes_freed.load() > kMostLive) sched_yield();
}

int key_equals(cds_lfht_node* node, const void* key) {
    return caa_container_of(node, Node, in_table)->key == *static_cast<const uint64_t*>(key);
}

// Call under rcu_read_lock.
Node* find(uint64_t key) {
    cds_lfht_iter place;
    cds_lfht_lookup(table, mix(key), key_equals, &key, &place);
    cds_lfht_node* found = cds_lfht_iter_get_node(&place);
    return found == nullptr ? nullptr : caa_container_of(found, Node, in_table);
}

void enqueue(Node* node) {
    cds_wfcq_node_init(&node->in_queue);
    cds_wfcq_enqueue({&queue_head}, &queue_tail, &node->in_queue);
}

// Each thread has a seat, which the next round's thread takes over; its handler is a producer of its own.
constexpr size_t kSeats = kWriters + kProducers + kReaders + 1;
thread_local uint64_t handler_producer;
thread_local uint64_t* handler_made;

void on_signal(int) {
    if (nodes_made.load() - nodes_freed.load() > kMostLive) return;
    const int saved_errno = errno;
    free(malloc(1 + *handler_made % 5000));
    enqueue(Node::make(kKeys + handler_producer, (*handler_made)++));
    errno = saved_errno;
}

class ThreadTimer {
  public:
    explicit ThreadTimer(bool enabled) : enabled_(enabled) {
        if (!enabled_) return;
        sigevent event{};
        event.sigev_notify = SIGEV_THREAD_ID;
        event.sigev_signo = SIGRTMIN;
        event._sigev_un._tid = gettid();
        const itimerspec period{{0, kSignalPeriod}, {0, kSignalPeriod}};
        check(timer_create(CLOCK_MONOTONIC, &event, &timer_) == 0, "timer_create failed");
        check(timer_settime(timer_, 0, &period, nullptr) == 0, "timer_settime failed");
    }
    ~ThreadTimer() {
        if (enabled_) timer_delete(timer_);
    }
    ThreadTimer(const ThreadTimer&) = delete;
    ThreadTimer& operator=(const ThreadTimer&) = delete;

  private:
    bool enabled_;
    timer_t timer_{};
};

// Adds, replaces and removes its own keys. `known[key]` is the number of the key's node in the table, 0 for none.
void write_table(uint64_t writer, uint64_t seed, uint64_t operations, std::vector<uint64_t>& known, uint64_t& number) {
    Random random(seed);
    for (uint64_t i = 0; i < operations; ++i) {
        wait_for_reclaimer();
        const uint64_t key = random.below(kKeys / kWriters) * kWriters + writer;
        const bool remove = random.below(3) == 0;
        Node* added = remove ? nullptr : Node::make(key, ++number);
        rcu_read_lock();
        Node* old = find(key);
        check((old == nullptr ? 0 : old->number) == known[key], "the table has another node than was put there");
        if (old != nullptr) old->check_bytes();
        if (added != nullptr) {
            cds_lfht_node* replaced = cds_lfht_add_replace(table, mix(key), key_equals, &key, &added->in_table);
            check(replaced == (old == nullptr ? nullptr : &old->in_table), "another node was replaced");
        } else if (old != nullptr) {
            check(cds_lfht_del(table, &old->in_table) == 0, "a node could not be removed");
        }
        rcu_read_unlock();
        if (old != nullptr) old->free_after_readers();
        known[key] = added == nullptr ? 0 : number;
    }
}

void read_table(uint64_t seed, const std::atomic<bool>& stop) {
    Random random(seed);
    while (!stop.load()) {
        rcu_read_lock();
        for (int i = 0; i < 20; ++i) {
            if (Node* node = find(random.below(kKeys)); node != nullptr) node->check_bytes();
        }
        rcu_read_unlock();
    }
}

void produce(uint64_t producer, uint64_t operations, uint64_t& made) {
    for (uint64_t i = 0; i < operations; ++i) {
        wait_for_reclaimer();
        enqueue(Node::make(kKeys + producer, made++));
    }
}

// The only consumer. `expected[producer]` is the next number from that producer.
void consume(std::vector<uint64_t>& expected, const std::atomic<bool>& stop) {
    for (;;) {
        const bool last_look = stop.load();
        cds_wfcq_node* found = __cds_wfcq_dequeue_blocking({&queue_head}, &queue_tail);
        if (found == nullptr) {
            if (last_look) return;
            sched_yield();
            continue;
        }
        Node* node = caa_container_of(found, Node, in_queue);
        node->check_bytes();
        const uint64_t producer = node->key - kKeys;
        check(producer < expected.size() && node->number == expected[producer]++, "the queue's order is broken");
        node->free_after_readers();
    }
}

class Client {
  public:
    explicit Client(bool signals)
        : signals_(signals), known_(kKeys), made_(kProducers + kSeats), consumed_(made_.size()) {}

    void run(uint64_t operations) {
        for (uint64_t round = 0; round < kRounds; ++round) run_round(round, operations / kRounds);
    }

    // Empties the table, whose nodes must be those that the writers know.
    void check_table() {
        uint64_t found = 0;
        cds_lfht_iter place;
        cds_lfht_node* entry;
        rcu_read_lock();
        cds_lfht_for_each(table, &place, entry) {
            Node* node = caa_container_of(entry, Node, in_table);
            check(node->key < kKeys && known_[node->key] == node->number, "the table holds a node it should not");
            node->check_bytes();
            check(cds_lfht_del(table, entry) == 0, "a node could not be removed at the end");
            node->free_after_readers();
            known_[node->key] = 0;
            ++found;
        }
        rcu_read_unlock();
        for (const uint64_t number : known_) check(number == 0, "the table has lost a node");
        check(found > kKeys / 10, "the table was almost empty: nothing was tested");
    }

    uint64_t made_in_handlers() const {
        uint64_t sum = 0;
        for (size_t seat = 0; seat < kSeats; ++seat) sum += made_[kProducers + seat];
        return sum;
    }

  private:
    template <typename Work>
    std::thread start(size_t seat, Work work) {
        return std::thread([this, seat, work] {
            handler_producer = kProducers + seat;
            handler_made = &made_[handler_producer];
            rcu_register_thread();
            {
                const ThreadTimer timer(signals_);
                work();
            }
            rcu_unregister_thread();
        });
    }

    void run_round(uint64_t round, uint64_t operations) {
        std::atomic<bool> stop{false};
        std::vector<std::thread> finite;
        std::vector<std::thread> endless;
        size_t seat = 0;
        for (uint64_t writer = 0; writer < kWriters; ++writer) {
            const uint64_t seed = round * kWriters + writer;
            finite.push_back(
                start(seat++, [=, this] { write_table(writer, seed, operations, known_, numbers_[writer]); }));
        }
        for (uint64_t producer = 0; producer < kProducers; ++producer) {
            finite.push_back(start(seat++, [=, this] { produce(producer, operations, made_[producer]); }));
        }
        for (uint64_t reader = 0; reader < kReaders; ++reader) {
            endless.push_back(start(seat++, [&stop, round] { read_table(1'000 + round, stop); }));
        }
        endless.push_back(start(seat++, [this, &stop] { consume(consumed_, stop); }));
        for (std::thread& thread : finite) thread.join();
        stop = true;
        for (std::thread& thread : endless) thread.join();
        consume(consumed_, stop);  // what handlers have put in since
        check(made_ == consumed_, "the queue has lost nodes");
    }

    bool signals_;
    std::vector<uint64_t> known_;
    std::vector<uint64_t> made_;      // by each producer, then by each seat's handler
    std::vector<uint64_t> consumed_;  // of each of them
    uint64_t numbers_[kWriters] = {};
};

}  // namespace

int main(int argc, char** argv) {
    const bool signals = argc == 3 && strcmp(argv[2], "--signals") == 0;
    const uint64_t operations = argc < 2 ? 0 : strtoull(argv[1], nullptr, 10);
    if (operations < kRounds || argc > 3 || (argc == 3 && !signals)) fail("usage: urcu_client OPERATIONS [--signals]");
    struct sigaction action {};
    action.sa_handler = on_signal;
    action.sa_flags = SA_RESTART;
    sigaction(SIGRTMIN, &action, nullptr);

    rcu_register_thread();
    check(create_all_cpu_call_rcu_data(0) == 0, "no reclaimer threads");
    table = cds_lfht_new(16, 16, 0, CDS_LFHT_AUTO_RESIZE | CDS_LFHT_ACCOUNTING, nullptr);
    check(table != nullptr, "no table");
    __cds_wfcq_init(&queue_head, &queue_tail);

    Client client(signals);
    client.run(operations);
    client.check_table();
    check(cds_lfht_destroy(table, nullptr) == 0, "the table is not empty");
    rcu_barrier();
    check(nodes_made.load() == nodes_freed.load(), "nodes made and nodes freed are not as many");
    check(!signals || client.made_in_handlers() > 100, "almost no handler ran: nothing was tested");
    rusage usage{};
    check(getrusage(RUSAGE_SELF, &usage) == 0 && usage.ru_maxrss < kMostResident, "too much resident memory");
    free_all_cpu_call_rcu_data();
    rcu_unregister_thread();
    printf("passed: %ld nodes, %lu of them in handlers, none live\n", nodes_made.load(), client.made_in_handlers());
}
