// The matrix: every operation at every instruction with every mishap, or a sample of it.
#ifndef RTSPAN_STRESS_INTERRUPTION_MATRIX_H
#define RTSPAN_STRESS_INTERRUPTION_MATRIX_H

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "catalogue.h"
#include "table.h"

namespace stress {

struct MatrixOptions {
    uint64_t seed = 0;
    unsigned jobs = 2;
    std::string only;              // rows whose name contains it
    std::optional<Mishap> mishap;  // this one alone
    uint64_t at = 0;               // this instruction alone
    uint64_t sample = 1;           // every so many instructions
};

std::vector<const Operation*> operations_like(const std::string& pattern);

std::vector<RowReport> run_matrix(const MatrixOptions& options);

}  // namespace stress

#endif
