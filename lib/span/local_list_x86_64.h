// Pop and push as restartable sequences (Linux 4.18, registered by glibc 2.35 and later; Desnoyers; rseq(2)).
//
// Protocol with the kernel: storing a descriptor's address into the thread's rseq area arms the sequence [1, 2). If the
// thread is preempted, migrated or gets a signal while its instruction pointer is in there, it continues at 4, which
// must be preceded by the signature that libc registered. The last instruction before 2 is the commit: a single store
// of the local word. What stands before it changes nothing that anyone relies on: the push writes link and mark into a
// block that is being freed, the pop of an untouched block raises the bound. So a handler never sees half an operation,
// and the operation never misses what a handler did.
//
// A list whose head has the bump mark is another sequence's, so that the usual one tests one bit; that mark is there
// too where the list is empty.
//
// `rseq_cs` is the address of that field in the thread's rseq area, or of a word nobody reads where the thread has
// none; then the sequences run unprotected, on the empty LAB, where they can only fail.
//
// release/acquire [SP2]: on x86-64 the commit is a release store and the loads are acquire loads; pairs with seq_cst
// [SP2] in Span::local.
#ifndef RTSPAN_SPAN_LOCAL_LIST_X86_64_H
#define RTSPAN_SPAN_LOCAL_LIST_X86_64_H

#include "span/span.h"

namespace rtspan {

// The area's address is the thread pointer plus the offset that libc exports; null where libc is older.
extern "C" {
extern const ptrdiff_t __rseq_offset __attribute__((weak));
extern const unsigned __rseq_size __attribute__((weak));
}

// The calling thread's rseq_cs field; null where the thread has no registered area.
inline uint64_t* rseq_cs_of_thread() {
    if (&__rseq_offset == nullptr || &__rseq_size == nullptr || __rseq_size == 0) return nullptr;
    char* area = static_cast<char*>(__builtin_thread_pointer()) + __rseq_offset;
    int32_t processor = *reinterpret_cast<volatile int32_t*>(area + 4);  // cpu_id: negative where not registered
    return processor < 0 ? nullptr : reinterpret_cast<uint64_t*>(area + 8);
}

// Where in a span the sequences find what checks.h speaks of.
inline constexpr size_t kBlockSizeAt = Span::kChecksOffset + Checks::kBlockSizeOffset;
inline constexpr size_t kSaltAt = Span::kChecksOffset + Checks::kSaltOffset;
inline constexpr size_t kFirstAt = Span::kChecksOffset + Checks::kFirstOffset;
inline constexpr size_t kMultiplierAt = Span::kChecksOffset + Checks::kMultiplierOffset;
inline constexpr size_t kBoundAt = Span::kChecksOffset + Checks::kBoundOffset;

// No asm goto: gcc 12 loses what is to happen on a jump's edge where the asm has outputs (gcc bug 113921).
#define RTSPAN_RSEQ_BEGIN                                          \
    ".pushsection .data.rel.ro.rtspan_rseq, \"aw\", @progbits\n\t" \
    ".balign 32\n"                                                 \
    "3:\n\t"                                                       \
    ".long 0, 0\n\t"                                               \
    ".quad 1f, 2f - 1f, 4f\n\t"                                    \
    ".popsection\n\t"                                              \
    "leaq 3b(%%rip), %[word]\n\t"                                  \
    "movq %[word], (%[rseq_cs])\n"                                 \
    "1:\n\t"
// `on_abort` leaves the result that says so.
#define RTSPAN_RSEQ_END(on_abort)                             \
    "2:\n\t"                                                  \
    ".pushsection .text.rtspan_abort, \"ax\", @progbits\n\t"  \
    ".byte 0x0f, 0xb9, 0x3d\n\t" /* ud1, for disassemblers */ \
    ".long 0x53053053\n"                                      \
    "rtspan_abort_slow_%=:\n"                                 \
    "4:\n\t" on_abort                                         \
    "\n\t"                                                    \
    "jmp 2b\n\t"                                              \
    ".popsection\n\t"

// The first block of the list of the slot's span; null where the sequence was aborted, the list is empty or all
// untouched, or its first block was written to since it was freed.
[[gnu::always_inline]] inline void* rseq_pop(uint64_t* rseq_cs, const Atomic<Span*>* slot) {
    Span* span;
    uint64_t word, head, link;
    char* block;
    asm volatile(RTSPAN_RSEQ_BEGIN
                 "movq %[slot], %[span]\n\t"
                 "movq %c[local](%[span]), %[word]\n\t"
                 "testb %[bump], %b[word]\n\t"
                 "jnz 4f\n\t"
                 "movq %c[base](%[span]), %[block]\n\t"
                 "movl %k[word], %k[head]\n\t"
                 "andl %[head_mask], %k[head]\n\t"
                 "addq %[head], %[block]\n\t"
                 "movl (%[block]), %k[link]\n\t"
                 "movl %c[mark](%[block]), %k[head]\n\t"
                 "subl %k[link], %k[head]\n\t"
                 "cmpl %c[salt](%[span]), %k[head]\n\t"
                 "jne 4f\n\t"
                 "andq %[count_mask], %[word]\n\t"  // sign-extended: clears the head alone
                 "leaq -%c[one](%[word], %[link]), %[word]\n\t"
                 "movq %[word], %c[local](%[span])\n" RTSPAN_RSEQ_END("xorl %k[block], %k[block]")
                 : [span] "=&r"(span), [word] "=&r"(word), [head] "=&r"(head), [link] "=&r"(link), [block] "=&r"(block)
                 : [rseq_cs] "r"(rseq_cs), [slot] "m"(*slot), [local] "i"(Span::kLocalOffset),
                   [base] "i"(Span::kBaseOffset), [salt] "i"(kSaltAt), [mark] "i"(Checks::kMarkOffset),
                   [bump] "i"(LocalWord::kBump), [count_mask] "i"(-static_cast<int32_t>(LocalWord::kOneBlock)),
                   [head_mask] "i"(LocalWord::kHeadMask), [one] "i"(LocalWord::kOneBlock)
                 : "memory", "cc");
    if (__builtin_expect(block != nullptr, 1)) Checks::clear_mark(reinterpret_cast<uintptr_t>(block));
    return block;
}

// The same where all blocks of the list are untouched.
[[gnu::always_inline]] inline void* rseq_pop_untouched(uint64_t* rseq_cs, const Atomic<Span*>* slot) {
    Span* span;
    uint64_t word, head, bound;
    char* block;
    asm volatile(
        RTSPAN_RSEQ_BEGIN
        "movq %[slot], %[span]\n\t"
        "movq %c[local](%[span]), %[word]\n\t"
        "testl %[count_mask], %k[word]\n\t"
        "jz 4f\n\t"
        "testb %[bump], %b[word]\n\t"
        "jz 4f\n\t"
        "movl %k[word], %k[head]\n\t"
        "andl %[head_mask], %k[head]\n\t"
        "movl %c[size](%[span]), %k[bound]\n\t"
        "movq %c[base](%[span]), %[block]\n\t"
        "leaq -1(%[block], %[head]), %[block]\n\t"  // the bump mark is no part of the address
        "leaq -%c[one](%[word], %[bound]), %[word]\n\t"
        "addq %[block], %[bound]\n\t"
        "subq %c[first](%[span]), %[bound]\n\t"
        "imulq %c[multiplier](%[span]), %[bound]\n\t"
        "movq %[bound], %c[bound_at](%[span])\n\t"  // one block too high if the sequence is aborted behind this
        "movq %[word], %c[local](%[span])\n" RTSPAN_RSEQ_END("xorl %k[block], %k[block]")
        : [span] "=&r"(span), [word] "=&r"(word), [head] "=&r"(head), [bound] "=&r"(bound), [block] "=&r"(block)
        : [rseq_cs] "r"(rseq_cs), [slot] "m"(*slot), [local] "i"(Span::kLocalOffset), [base] "i"(Span::kBaseOffset),
          [size] "i"(kBlockSizeAt), [first] "i"(kFirstAt), [multiplier] "i"(kMultiplierAt), [bound_at] "i"(kBoundAt),
          [bump] "i"(LocalWord::kBump), [count_mask] "i"(-static_cast<int32_t>(LocalWord::kOneBlock)),
          [head_mask] "i"(LocalWord::kHeadMask), [one] "i"(LocalWord::kOneBlock)
        : "memory", "cc");
    return block;
}

// The word that the push left. Where nothing was pushed: kAborted, or kSuspected if the block does not look like one in
// use (Checks::begins_block, Checks::is_marked). Every limit is reached by both, so the fast path needs no test for
// them.
inline constexpr uint64_t kAborted = UINT64_MAX, kSuspected = UINT32_MAX;
[[gnu::always_inline]] inline LocalWord rseq_push(uint64_t* rseq_cs, Span* span, void* block) {
    uint64_t word, head;
    // What a push adds to the word besides taking the old head away: one block, one version, the block's offset.
    uint64_t addend = Span::offset_of(block) + LocalWord::kOneBlock + LocalWord::kOneVersion;
    asm volatile(
        "movq %[block], %[word]\n\t"
        "subq %c[first](%[span]), %[word]\n\t"
        "imulq %c[multiplier](%[span]), %[word]\n\t"
        "cmpq %c[bound](%[span]), %[word]\n\t"
        "jae 5f\n\t"
        "movl %c[mark](%[block]), %k[head]\n\t"
        "subl (%[block]), %k[head]\n\t"
        "cmpl %c[salt](%[span]), %k[head]\n\t"
        "je 5f\n\t"  //
        RTSPAN_RSEQ_BEGIN
        "movq %c[local](%[span]), %[word]\n\t"
        "movl %k[word], %k[head]\n\t"
        "andl %[head_mask], %k[head]\n\t"
        "movl %k[head], (%[block])\n\t"
        "addl %c[salt](%[span]), %k[head]\n\t"
        "movl %k[head], %c[mark](%[block])\n\t"
        "andq %[count_mask], %[word]\n\t"  // sign-extended: clears the head alone
        "addq %[addend], %[word]\n\t"
        "movq %[word], %c[local](%[span])\n" RTSPAN_RSEQ_END("movq $-1, %[word]")
        ".pushsection .text.rtspan_abort, \"ax\", @progbits\n"
        "rtspan_suspected_slow_%=:\n"
        "5:\n\t"
        "movl $-1, %k[word]\n\t"  // zero-extended
        "jmp 2b\n\t"
        ".popsection\n\t"
        : [word] "=&r"(word), [head] "=&r"(head)
        : [rseq_cs] "r"(rseq_cs), [span] "r"(span), [block] "r"(block), [addend] "r"(addend),
          [local] "i"(Span::kLocalOffset), [salt] "i"(kSaltAt), [mark] "i"(Checks::kMarkOffset), [first] "i"(kFirstAt),
          [multiplier] "i"(kMultiplierAt), [bound] "i"(kBoundAt),
          [head_mask] "i"(LocalWord::kHeadMask), [count_mask] "i"(-static_cast<int32_t>(LocalWord::kOneBlock))
        : "memory", "cc");
    return LocalWord(word);
}

#undef RTSPAN_RSEQ_BEGIN
#undef RTSPAN_RSEQ_END

}  // namespace rtspan

#endif
