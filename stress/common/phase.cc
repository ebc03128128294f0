#include "phase.h"

namespace stress {

const char* name_of(Phase phase) {
    switch (phase) {
        case Phase::kHarness:
            return "outside the allocator";
        case Phase::kMalloc:
            return "malloc";
        case Phase::kCalloc:
            return "calloc";
        case Phase::kRealloc:
            return "realloc";
        case Phase::kAligned:
            return "aligned allocation";
        case Phase::kUsableSize:
            return "malloc_usable_size";
        case Phase::kFree:
            return "free";
        case Phase::kRefused:
            return "a request to be refused";
        case Phase::kInspection:
            return "malloc_trim or mallinfo2";
        case Phase::kThreadBirth:
            return "thread birth";
        case Phase::kThreadExit:
            return "thread exit";
        case Phase::kFinished:
            return "finished";
    }
    return "unknown";
}

}  // namespace stress
