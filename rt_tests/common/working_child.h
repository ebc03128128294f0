// A program that does its work in a child, which may hang or crash, and watches it from the parent.
#pragma once

#include <sys/mman.h>
#include <sys/types.h>

#include <new>
#include <string>

// The file that `malloc` comes from: whether LD_PRELOAD was right.
std::string library_of_malloc();

// Memory that parent and child share, present from the beginning; null where it cannot be had.
template <class Page>
Page* map_shared_page() {
    void* memory =
        mmap(nullptr, sizeof(Page), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    return memory == MAP_FAILED ? nullptr : new (memory) Page;
}

bool has_ended(pid_t child);

// Waits for the child; its status as of waitpid. The caller is SCHED_OTHER from then on: with a real-time priority the
// kernel spins here while another task is half way through dropping the child's /proc entries, and where that task
// waits for this very processor, it spins for ever (seen on Linux 6.18).
int reap(pid_t child);
