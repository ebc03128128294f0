#include "matrix.h"

#include <algorithm>
#include <cstdio>
#include <set>

#include "breakpoints.h"
#include "os/tunables.h"
#include "random.h"
#include "span/local_list.h"
#include "supervisor.h"

namespace stress {

namespace {

constexpr uint64_t kMessagesPerCell = 3;
constexpr uint64_t kMaxHungPerCell = 2;
// A sample takes so many times more of the few instructions of the sequences.
constexpr uint64_t kSequencePart = 16;
// How long the operation takes beside a handler or a rival is counted in every run of so short paths, else in one of so
// many: stepping is slow.
constexpr uint64_t kAlwaysCounted = 200, kCountedPart = 8;

// Whether the loss stays within what the row's bound allows for.
bool is_within(const Loss& loss, const Bound& bound) {
    return loss.block_bytes + loss.span_bytes <= bound.bytes && loss.blocks <= bound.blocks &&
           loss.spans <= bound.spans && loss.labs <= bound.labs && loss.mapped_bytes <= bound.mapped_bytes;
}

std::string describe(const Loss& loss) {
    return std::to_string(loss.blocks) + " blocks of " + std::to_string(loss.block_bytes) + " bytes, " +
           std::to_string(loss.spans) + " spans of " + std::to_string(loss.span_bytes) + ", " +
           std::to_string(loss.labs) + " LABs of " + std::to_string(loss.lab_bytes) + ", " +
           std::to_string(loss.mapped_bytes) + " bytes of mappings";
}

bool has_sequences() { return rtspan::os::rseq_wanted() && rtspan::rseq_cs_of_thread() != nullptr; }

std::set<const Sequence*> interrupted_sequences;

void note_sequences(const Trail& trail) {
    for (uint64_t i = 0; i < trail.size; i++) {
        if (const Sequence* sequence = sequence_around(trail.instructions[i])) interrupted_sequences.insert(sequence);
    }
}

// Fills one row.
class Row {
  public:
    Row(Supervisor& supervisor, const MatrixOptions& options, const Operation& operation)
        : supervisor_(supervisor), options_(options) {
        report_.operation = &operation;
    }

    RowReport run() {
        if (is_sequence() && !has_sequences()) {
            report_.trouble = "not reached: no restartable sequences here";
            return report_;
        }
        if (!count_instructions()) return report_;
        for (const Mishap mishap : kMishaps) {
            if (options_.mishap && *options_.mishap != mishap) continue;
            if (is_meaningless(mishap)) continue;
            run_cell(mishap);
        }
        return report_;
    }

  private:
    bool is_sequence() const { return report_.operation->flow == Flow::kSequence; }

    bool is_meaningless(Mishap mishap) {
        if (report_.operation->flow != Flow::kExit || mishap != Mishap::kJump) return false;
        report_.trouble = "not reached: jump, for a thread at its end has no frame to jump to";
        return true;
    }

    // Two runs without a mishap: they must take the path that the row is about, equally long.
    bool count_instructions() {
        const Supervisor::Judge judge = [this](const Run&, const Outcome& outcome, const Verdict& verdict) {
            const uint64_t instructions = outcome.trail->size;
            if (!verdict.ended_well) {
                report_.trouble = "without a mishap: " + verdict.message;
            } else if (!outcome.confirmed.load(std::memory_order_relaxed)) {
                report_.trouble = "the set-up does not lead to this path";
            } else if (!outcome.loss.is_nothing()) {
                report_.trouble = "without a mishap: lost " + describe(outcome.loss);
            } else if (instructions == Trail::kMax) {
                report_.trouble = "too many instructions";
            } else if (instructions == 0) {
                report_.trouble = "no instruction to interrupt";
            } else if (report_.instructions != 0 && report_.instructions != instructions) {
                report_.trouble = "two runs differ: " + std::to_string(report_.instructions) + " and " +
                                  std::to_string(instructions) + " instructions";
            }
            report_.instructions = instructions;
            trail_ = *outcome.trail;
            if (is_sequence()) note_sequences(trail_);
            virtual_pages_ = outcome.virtual_pages;
        };
        for (int i = 0; i < 2 && report_.trouble.empty(); i++) {
            supervisor_.start({.operation = report_.operation, .seed = options_.seed}, judge);
            supervisor_.finish();
        }
        report_.failed = !report_.trouble.empty();
        return !report_.failed;
    }

    void run_cell(Mishap mishap) {
        CellReport& cell = report_.cells[mishap];
        hung_ = 0;
        const Supervisor::Judge judge = [this, &cell](const Run& run, const Outcome& outcome, const Verdict& verdict) {
            this->judge(cell, run, outcome, verdict);
        };
        uint64_t first = 1, last = report_.instructions, step = options_.sample;
        if (is_sequence()) step = std::max<uint64_t>(step / kSequencePart, 1);
        if (options_.at != 0) {
            first = options_.at;
            last = std::min(first, last);
        } else if (step > 1) {
            first += Random(options_.seed, static_cast<uint64_t>(mishap), report_.instructions).below(step);
        }
        for (uint64_t at = first; at <= last; at += step) {
            if (hung_ >= kMaxHungPerCell) {
                cell.skipped++;
                continue;
            }
            Run run{.operation = report_.operation, .mishap = mishap, .at = at, .seed = options_.seed};
            run.instruction = trail_.instructions[at - 1];
            run.occurrence = trail_.occurrence(at);
            run.counts_on = !is_sequence() && (mishap == Mishap::kHandler || mishap == Mishap::kConflict) &&
                            (last <= kAlwaysCounted || at % kCountedPart == 0);
            supervisor_.start(run, judge);
        }
        supervisor_.finish();
        report_.failed |= cell.failures + cell.skipped != 0;
    }

    void judge(CellReport& cell, const Run& run, const Outcome& outcome, const Verdict& verdict) {
        cell.runs++;
        hung_ += verdict.hung;
        std::string message = verdict.message;
        if (verdict.ended_well) {
            const bool inside = sequence_around(run.instruction) != nullptr;
            if (!outcome.struck.load(std::memory_order_relaxed)) {
                message = "the operation ended before this instruction";
            } else if (is_sequence() && outcome.aborted.load(std::memory_order_relaxed) != inside) {
                message = inside ? "the sequence was not aborted" : "aborted outside the sequence";
            }
            Loss loss = outcome.loss;
            const bool measured = outcome.measured.load(std::memory_order_relaxed);
            if (measured && outcome.virtual_pages > virtual_pages_ && run.mishap != Mishap::kFork) {
                loss.mapped_bytes = (outcome.virtual_pages - virtual_pages_) * 4096;
            }
            const bool gone = run.mishap == Mishap::kDeath || run.mishap == Mishap::kJump;
            if (!is_within(loss, gone ? run.operation->bound : Bound{})) message = "lost " + describe(loss);
            if (!outcome.child_loss.is_nothing()) message = "the child lost " + describe(outcome.child_loss);
            if (cell.most_lost < loss) cell.most_lost = loss;
            if (run.counts_on) {
                cell.most_instructions =
                    std::max(cell.most_instructions, outcome.instructions.load(std::memory_order_relaxed));
            }
        }
        if (message.empty()) return;
        if (++cell.failures > kMessagesPerCell) return;
        std::printf("interruption: FAILED: --only '%s' --mishap %s --at %lu --seed %lu (instruction 0x%lx): %s\n",
                    run.operation->name, name_of(run.mishap), run.at, run.seed, offset_in_program(run.instruction),
                    message.c_str());
        std::fflush(stdout);
    }

    Supervisor& supervisor_;
    const MatrixOptions& options_;
    RowReport report_;
    uint64_t virtual_pages_ = 0;
    Trail trail_{};
    uint64_t hung_ = 0;
};

}  // namespace

std::vector<const Operation*> operations_like(const std::string& pattern) {
    std::vector<const Operation*> found;
    for (const auto operations : {malloc_operations(), free_operations(), large_operations(), life_operations(),
                                  internal_operations(), sequence_operations()}) {
        for (const Operation& operation : operations) {
            if (std::string(operation.name).find(pattern) != std::string::npos) found.push_back(&operation);
        }
    }
    return found;
}

std::vector<RowReport> run_matrix(const MatrixOptions& options) {
    const size_t sequences = find_sequences();
    Supervisor supervisor(options.jobs);
    std::vector<RowReport> rows;
    print_heading(stdout);
    for (const Operation* operation : operations_like(options.only)) {
        rows.push_back(Row(supervisor, options, *operation).run());
        print_row(stdout, rows.back());
    }
    if (!interrupted_sequences.empty()) {
        std::printf("restartable sequences interrupted: %zu of the %zu in this program\n", interrupted_sequences.size(),
                    sequences);
    }
    return rows;
}

}  // namespace stress
