// What the runs add up to, as a table: on the terminal line by line as the rows are done, or as Markdown.
#ifndef RTSPAN_STRESS_INTERRUPTION_TABLE_H
#define RTSPAN_STRESS_INTERRUPTION_TABLE_H

#include <cstdio>
#include <map>
#include <string>
#include <vector>

#include "catalogue.h"
#include "outcome.h"

namespace stress {

struct CellReport {
    uint64_t runs = 0, failures = 0, skipped = 0;
    uint64_t most_instructions = 0;
    Loss most_lost;
};

struct RowReport {
    const Operation* operation = nullptr;
    uint64_t instructions = 0;
    bool failed = false;
    std::string trouble;  // why there is nothing more
    std::map<Mishap, CellReport> cells;
};

void print_heading(std::FILE* out);
void print_row(std::FILE* out, const RowReport& row);
void write_markdown(std::FILE* out, const std::vector<RowReport>& rows);

// What no row reaches.
void print_limits(std::FILE* out);

}  // namespace stress

#endif
