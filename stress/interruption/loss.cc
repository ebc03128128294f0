#include "loss.h"

#include <unistd.h>

#include <array>
#include <bitset>
#include <cstdio>
#include <cstring>

#include "arena/metadata.h"
#include "lab/attach.h"
#include "lab/registry.h"
#include "pool/span_pool.h"
#include "rtspan/rtspan.h"
#include "work.h"
#include "world.h"

namespace stress {

namespace {

using rtspan::Anchor;
using rtspan::Kind;
using rtspan::Span;
using rtspan::SpanState;

constexpr uint32_t kMaxSurveyed = 1 << 13;

// What may be resident of a span that is not in use: the dirty part but for the colour in front of its blocks.
uint64_t resident_bytes_of(Span* span) {
    const uint64_t dirty = span->dirty_bytes();
    const auto& geometry = rtspan::geometry(span->size_class());
    const uint64_t first = rtspan::first_block_offset(geometry.group, span->index());
    const uint64_t used = uint64_t{geometry.capacity} * geometry.block_size;
    return dirty == first + used ? used : dirty;
}

// The span in use by the metadata region, and its spare one; 0: none.
using MetadataSpans = std::array<uint32_t, 2>;

MetadataSpans metadata_spans() {
    uint64_t words[2];  // the cursor (span index 32 | offset 32) and the spare: both private
    static_assert(sizeof(rtspan::the_metadata) == sizeof words);
    std::memcpy(words, static_cast<const void*>(&rtspan::the_metadata), sizeof words);
    return {static_cast<uint32_t>(words[0] >> 32), static_cast<uint32_t>(words[1])};
}

MetadataSpans metadata_before{};

class Survey {
  public:
    explicit Survey(rtspan::OwnerId me) : me_(me) {}

    Loss run() {
        frontier_ = rtspan::the_arena.frontier();
        if (frontier_ > kMaxSurveyed) fail_run("the arena is larger than the surveyor can look at", frontier_);
        const Loss pinned = look_at_spans_in_use();
        account_for_metadata();
        for (unsigned number = 0; number < Kind::kCount; number++) drain(Kind::at(number));
        Loss loss = pinned;
        for (uint32_t index = 1; index < frontier_; index++) {
            if (accounted_[index]) continue;
            loss.spans++;
            loss.span_bytes += resident_bytes_of(Span::at(index));
        }
        count_labs(loss);
        return loss;
    }

  private:
    void account_for(uint32_t index, uint64_t count) {
        for (uint64_t i = 0; i < count && index + i < frontier_; i++) accounted_[index + i] = true;
    }

    Loss look_at_spans_in_use() {
        Loss loss;
        for (uint32_t index = 1; index < frontier_; index++) {
            Span* span = Span::at(index);
            const Anchor anchor = span->anchor();
            if (anchor.is(SpanState::large)) {
                const uint32_t head = span->run_head().load(rtspan::relaxed);
                loss.blocks++;
                loss.block_bytes += span->run_bytes().load(rtspan::relaxed);
                account_for(head, uint64_t{1} << Span::at(head)->run_order().load(rtspan::relaxed));
            } else if (anchor.has_blocks()) {
                const auto& geometry = rtspan::geometry(span->size_class());
                const uint64_t held = geometry.capacity - anchor.count() - span->local().count();
                account_for(index, 1);
                if (held == 0 || anchor.is(SpanState::hot)) {
                    loss.spans++;
                    loss.span_bytes += uint64_t{geometry.capacity} * geometry.block_size;
                } else {
                    loss.blocks += held;
                    loss.block_bytes += held * geometry.block_size;
                }
            }
        }
        return loss;
    }

    void account_for_metadata() {
        for (const MetadataSpans& spans : {metadata_before, metadata_spans()}) {
            for (const uint32_t index : spans) account_for(index, 1);
        }
        // The table's own spans.
        const uint64_t table = (rtspan::the_arena.spans() * rtspan::kDescriptorSize + rtspan::kVirtualSpanSize - 1) >>
                               rtspan::kVirtualSpanShift;
        account_for(0, table);
    }

    void drain(Kind kind) {
        while (Span* span = rtspan::the_pool.get(kind, me_)) {
            if (span->index() >= frontier_) return;
            for (uint64_t i = 0; i < uint64_t{1} << kind.order(); i++) {
                if (accounted_[span->index() + i]) fail_run("the pool gave a span that is in use", span->index() + i);
            }
            account_for(span->index(), uint64_t{1} << kind.order());
        }
    }

    // The caller has one.
    void count_labs(Loss& loss) {
        const uint32_t labs = rtspan::the_registry.count();
        static std::bitset<rtspan::Registry::kMaxLabs> seen;
        uint32_t had = 1;
        rtspan::LabState state;
        while (rtspan::Lab* lab = rtspan::the_registry.acquire_lab(state)) {
            const uint32_t number = lab->number;
            if (number > labs) break;
            if (seen[number]) fail_run("the registry gave a LAB twice", number);
            seen[number] = true;
            had++;
        }
        if (labs < had) fail_run("the registry gave more LABs than there are", had);
        loss.labs = labs - had;
        loss.lab_bytes = loss.labs * sizeof(rtspan::Lab);
    }

    const rtspan::OwnerId me_;
    uint64_t frontier_ = 0;
    std::bitset<kMaxSurveyed> accounted_;
};

void touch() {
    give_back(obtain(world.operation->size));
    give_back(obtain(kOtherSize));
}

Loss found;

}  // namespace

void note_metadata() { metadata_before = metadata_spans(); }

void let_repair() {
    for (int i = 0; i < 2; i++) {
        pass_by(touch);
        pass_by([] {
            touch();
            rtspan_malloc_trim(0);
        });
    }
}

Loss survey() {
    static Actor surveyor;
    surveyor.enter();
    surveyor.does([] {
        const rtspan::Lab* lab = rtspan::lab_of_thread();
        if (lab == nullptr) fail_run("no LAB for the surveyor", 0);
        found = Survey(lab->id.load(rtspan::relaxed)).run();
        if (world.operation->account != nullptr) world.operation->account(found);
    });
    return found;
}

// Without libc's own heap, which grows by 132 KiB when the harness happens to need it. Only differences mean anything.
uint64_t virtual_pages() {
    unsigned long pages = 0;
    FILE* file = std::fopen("/proc/self/statm", "re");
    if (file == nullptr || std::fscanf(file, "%lu", &pages) != 1) fail_run("no /proc/self/statm", 0);
    std::fclose(file);
    return pages - reinterpret_cast<uintptr_t>(sbrk(0)) / 4096;
}

}  // namespace stress
