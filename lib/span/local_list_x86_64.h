// Pop and push as restartable sequences (Linux 4.18, registered by glibc 2.35 and later; Desnoyers; rseq(2)).
//
// Protocol with the kernel: storing a descriptor's address into the thread's rseq area arms the sequence [1, 2). If the
// thread is preempted, migrated or gets a signal while its instruction pointer is in there, it continues at 4, which
// must be preceded by the signature that libc registered. The last instruction before 2 is the commit: a single store
// of the local word. What stands before it changes nothing that anyone reads: the push writes a link into a block that
// is being freed. So a handler never sees half an operation, and the operation never misses what a handler did.
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

// The first block of the list of the slot's span; null where the sequence was aborted or the list is empty.
[[gnu::always_inline]] inline void* rseq_pop(uint64_t* rseq_cs, const Atomic<Span*>* slot) {
    Span* span;
    uint64_t word, head, link;
    char* block;
    asm volatile(
        RTSPAN_RSEQ_BEGIN
        "movq %[slot], %[span]\n\t"
        "movq %c[local](%[span]), %[word]\n\t"
        "testl %[count_mask], %k[word]\n\t"
        "jz 4f\n\t"
        "movq %c[base](%[span]), %[block]\n\t"
        "movl %k[word], %k[head]\n\t"
        "andl %[head_mask], %k[head]\n\t"
        "addq %[head], %[block]\n\t"
        "testb $1, %b[word]\n\t"
        "jz 5f\n\t"
        "movl %c[size](%[span]), %k[link]\n\t"  // bump: the link is the next block,
        "decq %[block]\n\t"                     // and the mark no part of the address
        "addl %k[head], %k[link]\n\t"
        "jmp 6f\n"
        "5:\n\t"
        "movl (%[block]), %k[link]\n"
        "6:\n\t"
        "andq %[count_mask], %[word]\n\t"  // sign-extended: clears the head alone
        "leaq -%c[one](%[word], %[link]), %[word]\n\t"
        "movq %[word], %c[local](%[span])\n" RTSPAN_RSEQ_END("xorl %k[block], %k[block]")
        : [span] "=&r"(span), [word] "=&r"(word), [head] "=&r"(head), [link] "=&r"(link), [block] "=&r"(block)
        : [rseq_cs] "r"(rseq_cs), [slot] "m"(*slot), [local] "i"(Span::kLocalOffset), [base] "i"(Span::kBaseOffset),
          [size] "i"(Span::kBlockSizeOffset), [count_mask] "i"(-static_cast<int32_t>(LocalWord::kOneBlock)),
          [head_mask] "i"(LocalWord::kHeadMask), [one] "i"(LocalWord::kOneBlock)
        : "memory", "cc");
    return block;
}

// The word that the push left; kAborted where the sequence was aborted and nothing was pushed. Every limit is reached
// by kAborted, so the fast path needs no test for it.
inline constexpr uint64_t kAborted = UINT64_MAX;
[[gnu::always_inline]] inline LocalWord rseq_push(uint64_t* rseq_cs, Span* span, void* block) {
    uint64_t word, head;
    // What a push adds to the word besides taking the old head away: one block, one version, the block's offset.
    uint64_t addend = Span::offset_of(block) + LocalWord::kOneBlock + LocalWord::kOneVersion;
    asm volatile(RTSPAN_RSEQ_BEGIN
                 "movq %c[local](%[span]), %[word]\n\t"
                 "movl %k[word], %k[head]\n\t"
                 "andl %[head_mask], %k[head]\n\t"
                 "movl %k[head], (%[block])\n\t"
                 "andq %[count_mask], %[word]\n\t"  // sign-extended: clears the head alone
                 "addq %[addend], %[word]\n\t"
                 "movq %[word], %c[local](%[span])\n" RTSPAN_RSEQ_END("movq $-1, %[word]")
                 : [word] "=&r"(word), [head] "=&r"(head)
                 : [rseq_cs] "r"(rseq_cs), [span] "r"(span), [block] "r"(block), [addend] "r"(addend),
                   [local] "i"(Span::kLocalOffset), [head_mask] "i"(LocalWord::kHeadMask),
                   [count_mask] "i"(-static_cast<int32_t>(LocalWord::kOneBlock))
                 : "memory", "cc");
    return LocalWord(word);
}

#undef RTSPAN_RSEQ_BEGIN
#undef RTSPAN_RSEQ_END

}  // namespace rtspan

#endif
