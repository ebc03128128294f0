#include "table.h"

#include <algorithm>
#include <array>

#include "lab/lab.h"

namespace stress {

namespace {

using Cells = std::array<std::string, 7>;

const Cells kHeading = {"path",     "instructions",    "interrupted", "interruptions run",
                        "failures", "most bytes lost", "bound"};
constexpr int kWidths[] = {50, 12, 11, 17, 8, 32, 0};

// E.g. "65536 (1 block or 1 span)".
std::string describe(uint64_t bytes, uint64_t blocks, uint64_t spans, uint64_t labs, uint64_t mapped_bytes,
                     const char* block_and_span) {
    std::string parts;
    const auto add = [&parts](uint64_t count, const char* one, const char* many, const char* separator) {
        if (count == 0) return;
        if (!parts.empty()) parts += separator;
        parts += std::to_string(count) + " " + (count == 1 ? one : many);
    };
    add(blocks, "block", "blocks", "");
    add(spans, "span", "spans", block_and_span);
    add(labs, "LAB", "LABs", ", ");
    add(mapped_bytes >> 10, "KiB mapped", "KiB mapped", ", ");
    return std::to_string(bytes) + (parts.empty() ? "" : " (" + parts + ")");
}

std::string describe(const Loss& loss) {
    return describe(loss.bytes(), loss.blocks, loss.spans, loss.labs, loss.mapped_bytes, ", ");
}

std::string describe(const Bound& bound) {
    return describe(bound.bytes + bound.labs * sizeof(rtspan::Lab), bound.blocks, bound.spans, bound.labs,
                    bound.mapped_bytes, " or ");
}

Cells cells_of(const RowReport& row) {
    CellReport sum;
    for (const auto& [mishap, cell] : row.cells) {
        sum.runs += cell.runs;
        sum.failures += cell.failures;
        sum.most_instructions = std::max(sum.most_instructions, cell.most_instructions);
        if (sum.most_lost < cell.most_lost) sum.most_lost = cell.most_lost;
    }
    return {row.operation->name,
            std::to_string(row.instructions),
            sum.most_instructions == 0 ? "-" : std::to_string(sum.most_instructions),
            std::to_string(sum.runs),
            std::to_string(sum.failures),
            describe(sum.most_lost),
            describe(row.operation->bound)};
}

void print_cells(std::FILE* out, const Cells& cells) {
    for (size_t i = 0; i < cells.size(); i++) {
        const bool is_number = i >= 1 && i <= 4;
        std::fprintf(out, is_number ? "%*s  " : "%-*s  ", kWidths[i], cells[i].c_str());
    }
    std::fprintf(out, "\n");
    std::fflush(out);
}

void write_cells(std::FILE* out, const Cells& cells) {
    for (const std::string& cell : cells) std::fprintf(out, "| %s ", cell.c_str());
    std::fprintf(out, "|\n");
}

std::string describe_gaps(const RowReport& row) {
    std::string text = row.trouble;
    for (const auto& [mishap, cell] : row.cells) {
        if (cell.failures + cell.skipped == 0) continue;
        if (!text.empty()) text += "; ";
        text += std::string(name_of(mishap)) + ": " + std::to_string(cell.failures) + " of " +
                std::to_string(cell.runs) + " failed";
        if (cell.skipped != 0) text += ", " + std::to_string(cell.skipped) + " not run";
    }
    return text;
}

constexpr const char* kLimits[] = {
    "the kernel's part of a system call: it is interrupted before and behind, not within",
    "jump at a thread's exit: there is no frame to jump to",
    "the bare _Fork by a thread that ends without another call: the child cannot know that older copies are dead",
    "spans in other processors' stacks of the pool: a run stays on one processor, so that it can be repeated",
    "two mishaps in one call, but for what their handlers and rivals make of each other: the storms do that",
    "exhausted tables: 64 hazard slots of one stack, the windows of the table of huge objects, 65,535 LABs",
    "what depends on the number of blocks or spans: each row has one set-up",
};

}  // namespace

void print_heading(std::FILE* out) { print_cells(out, kHeading); }

void print_row(std::FILE* out, const RowReport& row) {
    print_cells(out, cells_of(row));
    const std::string gaps = describe_gaps(row);
    if (!gaps.empty()) std::fprintf(out, "    %s\n", gaps.c_str());
}

void print_limits(std::FILE* out) {
    std::fprintf(out, "Not reached by any row:\n");
    for (const char* limit : kLimits) std::fprintf(out, "- %s\n", limit);
}

void write_markdown(std::FILE* out, const std::vector<RowReport>& rows) {
    write_cells(out, kHeading);
    std::fprintf(out, "|---|---:|---:|---:|---:|---|---|\n");
    for (const RowReport& row : rows) write_cells(out, cells_of(row));
    std::fprintf(out, "\n");
    for (const RowReport& row : rows) {
        const std::string gaps = describe_gaps(row);
        if (!gaps.empty()) std::fprintf(out, "- %s: %s\n", row.operation->name, gaps.c_str());
    }
    std::fprintf(out, "\n");
    print_limits(out);
}

}  // namespace stress
