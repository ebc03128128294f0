// What there is to say about the allocator's state: mallinfo2, malloc_stats, malloc_info. One walk over the span table,
// reading words that others change: a snapshot of each span, not of the whole. Lock-free; cost proportional to the
// spans ever used. No counter is kept on any path for this.
#include <errno.h>
#include <stdio.h>

#include "lab/registry.h"
#include "os/text.h"
#include "rtspan/rtspan.h"

using namespace rtspan;

namespace {

struct Totals {
    size_t spans = 0;          // virtual spans up to the frontier
    size_t free_spans = 0;     // in the span-pool
    size_t free_resident = 0;  // bytes of those that may be resident
    size_t real_spans = 0;     // in use for blocks
    size_t real_bytes = 0;     // of their blocks
    size_t used_blocks = 0;    // handed out
    size_t used_bytes = 0;     // of their classes
    size_t large_objects = 0;
    size_t large_bytes = 0;
};

Totals count() {
    Totals t;
    t.spans = the_arena.frontier();
    for (uint32_t index = 1; index < t.spans; index++) {
        Span* span = Span::at(index);
        Anchor anchor = span->anchor();
        if (anchor.is(SpanState::free)) {
            t.free_spans++;
            t.free_resident += span->dirty_bytes();
        } else if (anchor.is(SpanState::large)) {
            t.large_objects++;
            t.large_bytes += span->run_bytes().load(relaxed);
        } else if (anchor.has_blocks()) {
            const Geometry& g = geometry(span->size_class());
            size_t unused = anchor.count() + span->local().count();
            size_t used = unused < g.capacity ? g.capacity - unused : 0;
            t.real_spans++;
            t.real_bytes += size_t{g.capacity} * g.block_size;
            t.used_blocks += used;
            t.used_bytes += used * g.block_size;
        }
    }
    return t;
}

}  // namespace

extern "C" {

struct mallinfo2 rtspan_mallinfo2() noexcept {
    Totals t = count();
    struct mallinfo2 info = {};
    info.arena = t.real_bytes + t.free_resident;
    info.ordblks = t.free_spans;
    info.hblks = t.large_objects;
    info.hblkhd = t.large_bytes;
    info.uordblks = t.used_bytes + t.large_bytes;
    info.fordblks = t.real_bytes - t.used_bytes + t.free_resident;
    info.keepcost = t.free_resident;
    return info;
}

void rtspan_malloc_stats() noexcept {
    Totals t = count();
    os::Text<1024> text;
    auto line = [&text](const char* name, size_t value) {
        text.add("rtspan: ").add(name).add_decimal(value, 16).add('\n');
    };
    line("arena, bytes of address space   ", the_arena.bytes());
    line("virtual spans ever used         ", t.spans);
    line("threads with a LAB at most      ", the_registry.count());
    line("free spans                      ", t.free_spans);
    line("free spans, resident bytes      ", t.free_resident);
    line("real spans in use               ", t.real_spans);
    line("real spans in use, bytes        ", t.real_bytes);
    line("blocks in use                   ", t.used_blocks);
    line("blocks in use, bytes            ", t.used_bytes);
    line("large objects in use            ", t.large_objects);
    line("large objects in use, bytes     ", t.large_bytes);
    text.write();
}

int rtspan_malloc_info(int options, FILE* stream) noexcept {
    if (options != 0 || stream == nullptr) {
        errno = EINVAL;
        return -1;
    }
    Totals t = count();
    int written = fprintf(stream,
                          "<malloc version=\"rtspan-1\">\n"
                          "<arena bytes=\"%zu\" spans=\"%zu\"/>\n"
                          "<free spans=\"%zu\" resident=\"%zu\"/>\n"
                          "<real spans=\"%zu\" bytes=\"%zu\"/>\n"
                          "<blocks count=\"%zu\" bytes=\"%zu\"/>\n"
                          "<large count=\"%zu\" bytes=\"%zu\"/>\n"
                          "</malloc>\n",
                          the_arena.bytes(), t.spans, t.free_spans, t.free_resident, t.real_spans, t.real_bytes,
                          t.used_blocks, t.used_bytes, t.large_objects, t.large_bytes);
    return written < 0 ? -1 : 0;
}
}
