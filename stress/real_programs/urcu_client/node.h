// A node of the table or the queue. Its key and number, which together no other node has, determine its size and its
// bytes; all are checked on every use and once more by the reclaimer, which overwrites them before it frees the node.
#ifndef RTSPAN_STRESS_URCU_CLIENT_NODE_H
#define RTSPAN_STRESS_URCU_CLIENT_NODE_H

#include <unistd.h>
#include <urcu.h>
#include <urcu/rculfhash.h>
#include <urcu/wfcqueue.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <new>

// write(2) and _exit only: it is called in handlers too.
[[noreturn]] inline void fail(const char* message) {
    if (write(STDERR_FILENO, message, strlen(message)) < 0 || write(STDERR_FILENO, "\n", 1) < 0) _exit(2);
    _exit(1);
}

inline void check(bool condition, const char* message) {
    if (!condition) fail(message);
}

inline uint64_t mix(uint64_t x) {
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

class Random {
  public:
    explicit Random(uint64_t seed) : state_(seed) {}
    uint64_t below(uint64_t bound) { return mix(state_ += 0x9e3779b97f4a7c15u) % bound; }

  private:
    uint64_t state_;
};

inline std::atomic<long> nodes_made{0};
inline std::atomic<long> nodes_freed{0};

class Node {
  public:
    rcu_head reclaim;
    union {
        cds_lfht_node in_table;
        cds_wfcq_node in_queue;
    };
    uint64_t key;
    uint64_t number;

    // Async-signal-safe, if malloc is.
    static Node* make(uint64_t key, uint64_t number) {
        const size_t words = payload_words(key, number);
        void* block = malloc(sizeof(Node) + words * sizeof(uint64_t));
        check(block != nullptr, "malloc failed");
        check(reinterpret_cast<uintptr_t>(block) % alignof(max_align_t) == 0, "a block is not aligned");
        Node* node = new (block) Node;
        node->key = key;
        node->number = number;
        for (size_t i = 0; i < words; ++i) node->payload()[i] = word(key, number, i);
        nodes_made.fetch_add(1);
        return node;
    }

    void check_bytes() {
        const size_t words = payload_words(key, number);
        for (size_t i = 0; i < words; ++i) check(payload()[i] == word(key, number, i), "a node's bytes have changed");
    }

    void free_after_readers() {
        call_rcu(&reclaim, [](rcu_head* head) {
            Node* node = caa_container_of(head, Node, reclaim);
            node->check_bytes();
            memset(static_cast<void*>(node), 0xdd, sizeof(Node) + payload_words(node->key, node->number) * 8);
            free(node);
            nodes_freed.fetch_add(1);
        });
    }

  private:
    // Mostly some hundred bytes, now and then some ten thousand.
    static size_t payload_words(uint64_t key, uint64_t number) {
        const uint64_t choice = mix(key * 1'000'003 + number);
        return choice % 64 == 0 ? choice / 64 % 4000 : choice / 64 % 60;
    }
    static uint64_t word(uint64_t key, uint64_t number, size_t place) { return mix(key + mix(number + mix(place))); }
    uint64_t* payload() { return reinterpret_cast<uint64_t*>(this + 1); }
};

#endif
