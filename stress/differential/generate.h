// Where programs come from: chosen at random, or written for one feature each, for the corpus.
#ifndef RTSPAN_STRESS_DIFFERENTIAL_GENERATE_H
#define RTSPAN_STRESS_DIFFERENTIAL_GENERATE_H

#include <string>
#include <vector>

#include "op.h"
#include "random.h"

namespace stress {

// Of 20 to 400 operations. Some keep to one or two size classes, so that spans fill and empty; some to large objects,
// some to requests that must be refused; some do everything.
Program random_program(Random& random);

struct Feature {
    std::string name;
    Program program;
};
// Each at most 1 KiB long.
std::vector<Feature> all_features();

}  // namespace stress

#endif
