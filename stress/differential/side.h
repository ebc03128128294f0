// One allocator's calls, each with all checks that need no other allocator: rules.h on what it must give or refuse, and
// with which errno; checked.h on each block's place, size and content.
//
// The reference is held to the same, so that a wrong rule shows; not to keeping errno when it succeeds, and to what
// rules.h excepts.
#ifndef RTSPAN_STRESS_DIFFERENTIAL_SIDE_H
#define RTSPAN_STRESS_DIFFERENTIAL_SIDE_H

#include "allocator.h"
#include "block.h"
#include "checked.h"
#include "rules.h"

namespace stress {

class Side {
  public:
    Side(const Allocator& allocator, bool is_reference) : a_(allocator), is_reference_(is_reference) {}

    const Allocator& allocator() const { return a_; }
    bool is_reference() const { return is_reference_; }

    // Makes the request; for realloc and reallocarray of `block`, where it is live. A block given replaces `block`; on
    // refusal it stays and is shown to be whole. What is too large to be touched throughout is touched at its ends,
    // freed at once, and `block` is none. realloc to 0 frees `block` as well.
    Answer request(const Caller& caller, const Request& request, const Expected& expected, uint64_t id,
                   Block& block) const;
    // By free, free_sized or free_aligned_sized, where the block's origin allows these.
    void free(const Caller& caller, Code code, Block& block) const;
    void free_null(const Caller& caller) const;
    // Content and usable size are as they were; the content is then new, the id being so.
    void refill(const Caller& caller, uint64_t id, Block& block) const;
    void check(const Caller& caller, const Block& block) const;
    void check_usable(const Caller& caller, const Block& block) const;
    void trim(const Caller& caller, size_t pad) const;

  private:
    class Call;
    Caller named(const Caller& caller) const;
    size_t usable_size(const Caller& caller, void* address) const;
    void* call(const Request& request, Block& block, Answer& answer) const;
    void check_refusal(const Caller& caller, const Expected& expected, const Answer& answer) const;
    void pass_through(const Caller& caller, Block& block) const;

    const Allocator& a_;
    bool is_reference_;
};

}  // namespace stress

#endif
