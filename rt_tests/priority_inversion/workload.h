// What the three threads do with malloc and free: they leave blocks on shelves that all share, and free what they find
// there. So each frees the others' blocks, in the same spans (or pages, or arenas); batches run over any cache of a
// thread; large blocks reach what lies behind it (a span-pool, a page heap, the kernel).
//
// Each block holds a number made from its address, which is gone before it is freed: a block handed out twice is seen.
#pragma once

#include "calls.h"
#include "random.h"

// Takes more memory of each size than the operations will need, touches it and gives it back; then some operations.
void warm_up(Calls& calls, stress::Random& random, SharedPage& page);
// One random operation.
void operate(Calls& calls, stress::Random& random, SharedPage& page);
// Frees all that is on the shelves.
void clear_shelves(Calls& calls, SharedPage& page);
