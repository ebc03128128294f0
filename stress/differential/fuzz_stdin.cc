// The fuzzers' entry (fuzz.cc) with a main function: runs the files that are named, or standard input. Built by
// afl-clang-fast++ it is AFL++'s target, which gives it many inputs in one process.
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

#include "files.h"

extern "C" int LLVMFuzzerInitialize(int* count, char*** arguments);
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size);

namespace {

int run(const std::vector<uint8_t>& bytes) { return LLVMFuzzerTestOneInput(bytes.data(), bytes.size()); }

[[maybe_unused]] std::vector<uint8_t> read_all(int fd) {
    std::vector<uint8_t> bytes;
    uint8_t piece[4096];
    for (ssize_t length; (length = read(fd, piece, sizeof piece)) > 0;)
        bytes.insert(bytes.end(), piece, piece + length);
    return bytes;
}

std::vector<uint8_t> read_file(const std::string& path) {
    std::vector<uint8_t> bytes;
    for (const stress::Op& op : stress::read_program(path))
        bytes.insert(bytes.end(), op.bytes, op.bytes + sizeof op.bytes);
    return bytes;
}

}  // namespace

#ifdef __AFL_FUZZ_TESTCASE_LEN
#pragma clang diagnostic ignored "-Wgnu-statement-expression"
__AFL_FUZZ_INIT();
#endif

int main(int argc, char** argv) {
    LLVMFuzzerInitialize(&argc, &argv);
    unsigned count = 0;
    for (int i = 1; i < argc; ++i) {
        for (const std::string& file : stress::list_files(argv[i])) {
            run(read_file(file));
            ++count;
        }
    }
    if (argc > 1) {
        std::printf("fuzz_stdin: passed: %u files\n", count);
        return 0;
    }
#ifdef __AFL_FUZZ_TESTCASE_LEN
    __AFL_INIT();
    const uint8_t* bytes = __AFL_FUZZ_TESTCASE_BUF;
    while (__AFL_LOOP(500)) LLVMFuzzerTestOneInput(bytes, static_cast<size_t>(__AFL_FUZZ_TESTCASE_LEN));
#else
    run(read_all(STDIN_FILENO));
#endif
    return 0;
}
