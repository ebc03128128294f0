#include "generate.h"

#include <iterator>
#include <utility>

namespace stress {

namespace {

struct Weight {
    Code code;
    unsigned weight;
};

constexpr Weight kEverything[] = {
    {Code::kMalloc, 14},      {Code::kCalloc, 8},   {Code::kRealloc, 10},      {Code::kReallocArray, 4},
    {Code::kAlignedAlloc, 4}, {Code::kMemalign, 3}, {Code::kPosixMemalign, 4}, {Code::kValloc, 1},
    {Code::kPvalloc, 1},      {Code::kFree, 14},    {Code::kFreeSized, 4},     {Code::kFreeAlignedSized, 2},
    {Code::kNulls, 1},        {Code::kUsable, 2},   {Code::kCheck, 2},         {Code::kRefill, 2},
    {Code::kSwap, 2},         {Code::kBurst, 3},    {Code::kFreeMany, 3},      {Code::kTrim, 1},
    {Code::kCounters, 2},     {Code::kStats, 1},    {Code::kInfo, 1},          {Code::kSignal, 4},
    {Code::kJump, 1},         {Code::kExit, 2},     {Code::kKill, 1},          {Code::kFork, 1},
};
constexpr Weight kSpans[] = {
    {Code::kMalloc, 10}, {Code::kCalloc, 2},   {Code::kRealloc, 2},  {Code::kFree, 12},
    {Code::kBurst, 8},   {Code::kFreeMany, 8}, {Code::kCounters, 1}, {Code::kSignal, 3},
    {Code::kJump, 1},    {Code::kExit, 2},     {Code::kKill, 1},     {Code::kTrim, 1},
};

template <size_t kCount>
Code choose(Random& random, const Weight (&weights)[kCount]) {
    unsigned sum = 0;
    for (const Weight& weight : weights) sum += weight.weight;
    uint64_t left = random.below(sum);
    for (const Weight& weight : weights) {
        if (left < weight.weight) return weight.code;
        left -= weight.weight;
    }
    return weights[0].code;
}

enum Profile : uint8_t { kMixed, kFewClasses, kLarge, kRefusals, kProfiles };

uint8_t choose_size(Random& random, Profile profile, const unsigned (&classes)[2]) {
    switch (profile) {
        case kFewClasses:
            return class_choice(classes[random.below(2)]);
        case kLarge:
            return static_cast<uint8_t>(kPossibleSizes - 1 - random.below(24));
        case kRefusals:
            return static_cast<uint8_t>(random.below(kSizes));
        default:
            if (random.one_in(64)) return static_cast<uint8_t>(random.below(kSizes));
            // Small ones more often.
            return static_cast<uint8_t>(random.below(random.one_in(8) ? kPossibleSizes : kPossibleSizes / 2));
    }
}

}  // namespace

Program random_program(Random& random) {
    // Large objects take long to touch.
    const auto profile = random.one_in(2) ? kMixed : static_cast<Profile>(random.below(kProfiles));
    const unsigned first = static_cast<unsigned>(random.below(kPossibleSizes));
    const unsigned classes[2] = {first, static_cast<unsigned>(random.below(kPossibleSizes))};
    const unsigned slots = random.one_in(2) ? 256 : 8;
    Program program(20 + random.below(profile == kLarge ? 80 : 381));
    for (Op& op : program) {
        for (uint8_t& byte : op.bytes) byte = static_cast<uint8_t>(random.next());
        const Code code = profile == kFewClasses ? choose(random, kSpans) : choose(random, kEverything);
        // A fork takes longer than all else in a program.
        op.bytes[0] = static_cast<uint8_t>(code == Code::kFork && !random.one_in(8) ? Code::kCheck : code);
        op.bytes[2] = static_cast<uint8_t>(random.below(slots));
        op.bytes[3] = choose_size(random, profile, classes);
        const unsigned alignments = profile == kRefusals || random.one_in(16) ? kAlignments
                                    : profile == kLarge                       ? kPowers
                                                                              : 14;
        op.bytes[5] = static_cast<uint8_t>(random.below(alignments));
        if (profile != kRefusals && !random.one_in(16)) op.bytes[7] %= 240;
        if (code == Code::kFork) op.bytes[6] = static_cast<uint8_t>(random.below(32));
    }
    return program;
}

}  // namespace stress
