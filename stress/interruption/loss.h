// What memory is lost, exactly: measured when every block is freed and every thread but the surveyor has ended, in a
// process that ends afterwards.
//
// The surveyor empties the span-pool and the registry of free LABs: everything that can still be had is had, and once
// only. Of the virtual spans up to the frontier what it has not got is, by the span's own words:
//   in use, some blocks not free         those blocks are lost (they pin the span, as any block that is never freed)
//   in use, all blocks free, or hot      the span is lost: no free will ever make it free
//   large                                a large object lost
//   free or never used                   lost between two hands; bytes: what may be resident
//   the metadata region's                not lost
// A LAB is lost if its number does not come out of the registry. Huge objects: the address space of the process, beside
// that of an uninterrupted run.
#ifndef RTSPAN_STRESS_INTERRUPTION_LOSS_H
#define RTSPAN_STRESS_INTERRUPTION_LOSS_H

#include "outcome.h"

namespace stress {

// Before the operation: which spans are the metadata region's, which keeps the last ones only.
void note_metadata();

// What an application would do to get memory back: threads come and go, and the pool is trimmed.
void let_repair();

// By a thread that has called nothing yet and ends the process afterwards.
Loss survey();

// Pages of address space that this process has.
uint64_t virtual_pages();

}  // namespace stress

#endif
