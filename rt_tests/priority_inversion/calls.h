// malloc and free as the three threads call them: by their standard names, so that LD_PRELOAD decides. Each call is
// announced in its role's status; the derived classes decide what else surrounds it.
#pragma once

#include <cstdlib>

#include "shared_page.h"

class Calls {
  public:
    explicit Calls(RoleStatus& status) : status_(status) {}
    Calls(const Calls&) = delete;
    Calls& operator=(const Calls&) = delete;
    virtual ~Calls() = default;

    virtual void* allocate(size_t size) {
        begin(false);
        void* block = std::malloc(size);
        end();
        return block;
    }
    virtual void release(void* block) {
        begin(true);
        std::free(block);
        end();
    }

  protected:
    void begin(bool is_free) {
        status_.is_free.store(is_free, std::memory_order_relaxed);
        end();
    }
    void end() { status_.calls.fetch_add(1, std::memory_order_relaxed); }

  private:
    RoleStatus& status_;
};
