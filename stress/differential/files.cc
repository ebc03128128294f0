#include "files.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>

namespace stress {

namespace {

[[noreturn]] void refuse(const std::string& path, const char* why) {
    std::fprintf(stderr, "differential: %s: %s\n", why, path.c_str());
    std::exit(2);
}

}  // namespace

std::vector<std::string> list_files(const std::string& path) {
    std::error_code error;
    if (!std::filesystem::is_directory(path, error)) return {path};
    std::vector<std::string> files;
    for (const auto& entry : std::filesystem::directory_iterator(path, error)) {
        if (entry.is_regular_file()) files.push_back(entry.path().string());
    }
    if (error || files.empty()) refuse(path, "no files in");
    std::sort(files.begin(), files.end());
    return files;
}

Program read_program(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    const std::string bytes((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
    if (!file.is_open() || file.bad()) refuse(path, "cannot read");
    return program_of(reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size());
}

void write_program(const std::string& path, const Program& program) {
    std::ofstream file(path, std::ios::binary);
    for (const Op& op : program) file.write(reinterpret_cast<const char*>(op.bytes), sizeof op.bytes);
    file.close();
    if (!file) refuse(path, "cannot write");
}

}  // namespace stress
