#include "span/span.h"

#include "os/fatal.h"
#include "span/misuse.h"
#include "sync/seeded_bug.h"

namespace rtspan {

void Span::open_hot(unsigned size_class, OwnerId owner) {
    const Geometry& g = geometry(size_class);
    Anchor next = anchor_.load(relaxed).emptied(SpanState::hot);
    uint32_t first = first_block_offset(g.group, index());
    base_.store(memory(), relaxed);
    checks_.open(memory(), memory() + first, g, next.version());
    class_.store(size_class, relaxed);
    limit_.store(Limit(Limit::kNever, next.version()), relaxed);
    take_.store(TakeRecord(), relaxed);
    local_.store(local_.load(relaxed).fresh(first, g.capacity), relaxed);
    owner_.store(owner, relaxed);
    // release [SP1]: publishes owner and class to who sees the state; pairs with seq_cst [SP1] in anchor()
    anchor_.store(next, release);
}

Span::RemotePush Span::remote_push(void* block) {
    uintptr_t address = reinterpret_cast<uintptr_t>(block);
    uint32_t offset = offset_of(block);
    uint32_t capacity = geometry(size_class()).capacity;
    Anchor seen = anchor();
    for (;;) {
        if (!seen.has_blocks() || seen.count() >= capacity) end_by_misuse("free", "already free", address, this);
        Anchor next = seen.is(SpanState::hot) ? seen.pushed(offset) : seen.announced(offset);
        if (seen.is_cooling() && !seen.is_shared() && !is_seeded(SeededBug::announcement_keeps_limit)) {
            // A CAS from a limit that stood while the anchor did: an announcement that was stopped here must not, when
            // it goes on, replace that of a later stay. acquire [SP4]: the limit is not older than the anchor seen
            // below; pairs with seq_cst [SP4] of the CAS
            Limit limit = limit_.load(acquire);
            Anchor again = anchor();
            Limit always(Limit::kAlways, seen.version());
            bool waits = is_seeded(SeededBug::announcement_waits) && limit.raw() == always.raw();
            // seq_cst [SP3] [SP4]: the owner's frees that do not see the limit are seen by who evaluates after the CAS
            // below, or by the owner's next look into its set; pairs with fence [SP3] in lab/deallocate.cc
            if (again.raw() != seen.raw() || waits || !limit_.compare_exchange(limit, always, seq_cst)) {
                seen = anchor();
                continue;
            }
        }
        // The bump mark ends a list, as local_word.h wants it of one that is to be installed.
        uint32_t link = seen.count() == 0 ? LocalWord::kBump : seen.head_offset();
        checks_.set_link(address, link);
        if (try_transition(seen, next)) {
            return {next, next.is(SpanState::reusable) && !seen.is(SpanState::reusable)};
        }
    }
}

bool Span::refill(OwnerId me) {
    if (!finish_take(me)) return false;
    LocalWord word = local();
    Anchor seen = anchor();
    // Where it is not hot, a handler took it out of its slot.
    if (word.count() != 0 || !seen.is(SpanState::hot) || seen.count() == 0) return false;
    // The parity must be the one before this anchor's list is taken: no take was pending when the anchor was loaded,
    // and none was finished between the loads. acquire [SP5]: pairs with acq_rel [SP5] below
    if (take_.load(acquire).is_pending() || local().raw() != word.raw()) return true;
    bool parity = word.parity();
    TakeRecord none;
    // acq_rel [SP5]: a handler, or who continues for a dead owner, sees the record; pairs with acquire [SP5] in
    // finish_take
    if (!take_.compare_exchange(none, TakeRecord(seen, parity), acq_rel)) return true;
    return finish_take(me);
}

bool Span::finish_take(OwnerId me) {
    for (;;) {
        // acquire [SP5]: who sees another's record sees that it is the owner; pairs with acq_rel [SP5] in refill
        TakeRecord record = take_.load(acquire);
        if (!record.is_pending() || owner() != me) return true;
        LocalWord local = this->local();
        Anchor seen = anchor();
        // Still this record? A handler may have cleared it, and set one of the same version with a longer list, which
        // is what `seen` then follows. acquire [SP5]: pairs with acq_rel [SP5] in refill
        if (!(take_.load(acquire) == record)) continue;
        // With another parity the record's list is installed, or a handler overtook the record before it was stored:
        // then the anchor's list is not this record's to take.
        bool current = local.parity() == record.parity();
        bool matched = current && record.matches(seen);
        if (matched && !try_transition(seen, seen.taken())) continue;
        if (matched || (current && record.is_followed_by(seen))) {
            if (local.count() != 0) return false;
            LocalWord next = local.installed(record.head_offset(), record.count());
            // acq_rel [SP2]: pairs with seq_cst [SP2] in local()
            if (!local_.compare_exchange(local, next, acq_rel)) continue;
        }
        // Installed, or a remote push or a handler overtook the take: either way the record is done with.
        // release [SP5]: pairs with acquire [SP5] above
        take_.compare_exchange(record, TakeRecord(), release);
    }
}

void Span::end_by_write(uintptr_t block) const { end_by_misuse("malloc", "a free block was written to", block, this); }

void* Span::pop_for_install(OwnerId gone) {
    LocalWord word = local();
    // acquire [SP5]: pairs with acq_rel [SP5] in refill
    TakeRecord record = take_.load(acquire);
    bool to_install = record.is_pending() && record.parity() == word.parity() && record.is_followed_by(anchor());
    if (!to_install || owner() != gone || word.count() == 0) return nullptr;
    return try_pop(word);
}

void Span::leave_hot(OwnerId me) {
    const Geometry& g = geometry(size_class());
    // A take may be pending beside a local list if a handler left it so; at most C rounds.
    while (!finish_take(me)) {
        if (void* block = pop_for_install(me); block != nullptr) remote_push(block);
    }
    LocalWord word = local();
    // acq_rel [SP2]: whoever was interrupted in a pop fails; pairs with seq_cst [SP2] in local()
    while (!local_.compare_exchange(word, word.left(), acq_rel)) {
    }
    Anchor seen = anchor();
    for (;;) {
        RTSPAN_ASSERT(seen.is(SpanState::hot));
        uint32_t free_at = g.threshold + 1 > seen.count() ? g.threshold + 1 - seen.count() : 1;
        // Before the CAS, for a thread that is stopped for ever behind it; refresh_limit afterwards, for a handler that
        // frees into the span before it and finds the limit of a hot span missing.
        limit_.store(Limit(Limit::bound_of_count(free_at), seen.version() + 1), relaxed);
        if (try_transition(seen, seen.left())) break;
    }
    refresh_limit(me);
}

void Span::expire_limit() {
    // acquire [SP4]: the limit is not older than the anchor seen next; pairs with seq_cst [SP4] in remote_push
    Limit limit = limit_.load(acquire);
    Anchor seen = anchor();
    if (limit.bound() == Limit::kAlways) return;
    limit_.compare_exchange(limit, Limit(Limit::kAlways, seen.version() - 1), relaxed);
}

void Span::refresh_limit(OwnerId me) {
    for (;;) {
        // acquire [SP4]: the limit is not older than the anchor seen next; pairs with seq_cst [SP4] in remote_push
        Limit limit = limit_.load(acquire);
        Anchor seen = anchor();
        if (owner() != me || !seen.has_blocks()) return;
        uint32_t bound = Limit::kNever;
        if (seen.is_cooling()) {
            // Announced, or about to be: the announcer stored the limit, its CAS may still come.
            if (seen.is_shared() || (limit.bound() == Limit::kAlways && limit.stay() == seen.version())) return;
            const Geometry& g = geometry(size_class());
            uint32_t enough = seen.is(SpanState::floating) ? g.threshold + 1 : g.capacity;
            bound = Limit::bound_of_count(enough > seen.count() ? enough - seen.count() : 1);
        }
        if (limit.bound() == bound && limit.stay() == seen.version()) return;
        limit_.compare_exchange(limit, Limit(bound, seen.version()), relaxed);
    }
}

bool Span::is_in_a_list(uintptr_t block) const {
    uint32_t wanted = static_cast<uint32_t>(block - base_.load(relaxed));
    // From one marked block to the next: a link that is seen in one leads to a free block. A block that is not marked
    // has left the list, or was written to.
    auto finds = [&](uint32_t head, uint32_t count) {
        for (; count != 0 && (head & LocalWord::kBump) == 0; count--) {
            if (head == wanted) return true;
            uintptr_t next = block_at(head & LocalWord::kHeadMask & ~uint32_t{15});
            head = Checks::link_of(next);
            if (!checks_.is_marked(next, head)) return false;
        }
        return false;
    };
    constexpr int kMaxLooks = 4;
    for (int look = 0; look < kMaxLooks; look++) {
        // acquire [SP5]: before the anchor, whose list it may be on its way into the local word; pairs with acq_rel
        // [SP5] in refill
        TakeRecord record = take_.load(acquire);
        LocalWord word = local();
        Anchor seen = anchor();
        if (finds(word.head(), word.count()) || finds(seen.head_offset(), seen.count())) return true;
        if (record.is_pending() && finds(record.head_offset(), record.count())) return true;
        if (local().raw() == word.raw() && anchor().raw() == seen.raw()) return false;
    }
    return false;
}

bool Span::is_valid() const {
    Anchor anchor = anchor_.load(relaxed);
    if (!anchor.has_blocks()) return true;
    const Geometry& g = geometry(size_class());
    LocalWord local = local_.load(relaxed);
    bool take_allowed = anchor.is(SpanState::hot) || !take_.load(relaxed).is_pending();
    bool end_is_marked = local.count() != 0 || local.is_bump();
    return take_allowed && end_is_marked && local.count() + anchor.count() <= g.capacity &&
           checks_.block_size() == g.block_size;
}

}  // namespace rtspan
