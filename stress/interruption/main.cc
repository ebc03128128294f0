// interruption: at every instruction of every path of the allocator, each mishap that can befall a thread; then the
// others' work must complete, all invariants hold, no block be handed out twice, and no more memory be lost than the
// row's bound says (exactly none, where the thread goes on). catalogue.h has the operations, mishaps.cc the mishaps,
// run.cc what a run is, loss.h how loss is measured.
#include <getopt.h>
#include <sys/personality.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "matrix.h"
#include "process.h"

namespace {

using namespace stress;

struct Options {
    MatrixOptions matrix;
    bool list = false;
    const char* markdown = nullptr;
};

[[noreturn]] void usage(int status) {
    std::fprintf(status == 0 ? stdout : stderr,
                 "usage: interruption [--only PATTERN] [--mishap NAME] [--at N | --sample N] [--jobs N] [--seed N]\n"
                 "                    [--markdown FILE]\n"
                 "       interruption --list\n"
                 "  --only      the operations whose name contains PATTERN\n"
                 "  --mishap    handler, death, stop, jump, fork or conflict; else all\n"
                 "  --at        at this instruction alone: repeats a run that failed\n"
                 "  --sample    at every Nth instruction only, beginning where the seed says\n"
                 "  --jobs      processes at a time (2)\n"
                 "  --markdown  writes the table to FILE too\n");
    std::exit(status);
}

Mishap parse_mishap(const char* name) {
    for (const Mishap mishap : kMishaps) {
        if (std::string(name) == name_of(mishap)) return mishap;
    }
    std::fprintf(stderr, "--mishap: no such mishap: %s\n", name);
    std::exit(64);
}

Options parse(int argc, char** argv) {
    static const option kLong[] = {
        {"only", required_argument, nullptr, 'o'},     {"mishap", required_argument, nullptr, 'm'},
        {"at", required_argument, nullptr, 'a'},       {"sample", required_argument, nullptr, 'n'},
        {"jobs", required_argument, nullptr, 'j'},     {"seed", required_argument, nullptr, 's'},
        {"markdown", required_argument, nullptr, 'd'}, {"list", no_argument, nullptr, 'l'},
        {"help", no_argument, nullptr, 'h'},           {nullptr, 0, nullptr, 0},
    };
    Options options;
    MatrixOptions& matrix = options.matrix;
    matrix.seed = fresh_seed();
    for (int opt; (opt = getopt_long(argc, argv, "", kLong, nullptr)) != -1;) {
        switch (opt) {
            case 'o':
                matrix.only = optarg;
                break;
            case 'm':
                matrix.mishap = parse_mishap(optarg);
                break;
            case 'a':
                matrix.at = parse_number("--at", optarg);
                break;
            case 'n':
                matrix.sample = parse_number("--sample", optarg);
                break;
            case 'j':
                matrix.jobs = static_cast<unsigned>(parse_number("--jobs", optarg));
                break;
            case 's':
                matrix.seed = parse_number("--seed", optarg);
                break;
            case 'd':
                options.markdown = optarg;
                break;
            case 'l':
                options.list = true;
                break;
            default:
                usage(opt == 'h' ? 0 : 64);
        }
    }
    if (optind != argc || matrix.sample == 0 || matrix.jobs == 0 || matrix.jobs > 64) usage(64);
    if (operations_like(matrix.only).empty()) {
        std::fprintf(stderr, "--only: no operation has this in its name: %s\n", matrix.only.c_str());
        std::exit(64);
    }
    return options;
}

// The same addresses in every run: what is done about a reservation's alignment, and so the number of instructions,
// depends on them.
void fix_addresses(char** argv) {
    const int persona = personality(0xffffffff);
    if (persona == -1 || (persona & ADDR_NO_RANDOMIZE) != 0) return;
    if (personality(static_cast<unsigned long>(persona) | ADDR_NO_RANDOMIZE) == -1) return;
    execv("/proc/self/exe", argv);
}

}  // namespace

int main(int argc, char** argv) {
    fix_addresses(argv);
    const Options options = parse(argc, argv);
    const MatrixOptions& matrix = options.matrix;
    if (options.list) {
        for (const Operation* operation : operations_like(matrix.only)) std::printf("%s\n", operation->name);
        return 0;
    }
    std::printf("interruption: --sample %lu --jobs %u --seed %lu%s\n", matrix.sample, matrix.jobs, matrix.seed,
                std::getenv("RTSPAN_RSEQ") != nullptr ? ", RTSPAN_RSEQ is set" : "");
    std::fflush(stdout);
    const std::vector<RowReport> rows = run_matrix(matrix);
    if (matrix.only.empty()) print_limits(stdout);
    if (options.markdown != nullptr) {
        std::FILE* file = std::fopen(options.markdown, "w");
        if (file == nullptr) {
            std::perror(options.markdown);
            return 1;
        }
        write_markdown(file, rows);
        std::fclose(file);
    }
    const bool failed = std::any_of(rows.begin(), rows.end(), [](const RowReport& row) { return row.failed; });
    std::printf("interruption: %s\n", failed ? "FAILED" : "passed");
    return failed ? 1 : 0;
}
