// Random choices that can be replayed: a SplitMix64 stream, cheap enough to start a new one for every operation and for
// every run of a signal handler, so that what an operation does depends on the seed and its number alone.
#ifndef RTSPAN_STRESS_COMMON_RANDOM_H
#define RTSPAN_STRESS_COMMON_RANDOM_H

#include <cstddef>
#include <cstdint>

namespace stress {

inline uint64_t mix(uint64_t x) {
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

class Random {
  public:
    explicit Random(uint64_t seed) : state_(seed) {}
    Random(uint64_t seed, uint64_t stream, uint64_t step)
        : state_(mix(mix(seed + kGolden) + stream) + step * kGolden) {}

    uint64_t next() { return mix(state_ += kGolden); }
    uint64_t below(uint64_t bound) { return next() % bound; }
    bool one_in(uint64_t n) { return below(n) == 0; }

  private:
    static constexpr uint64_t kGolden = 0x9e3779b97f4a7c15u;
    uint64_t state_;
};

}  // namespace stress

#endif
