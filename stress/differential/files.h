// Programs as files.
#ifndef RTSPAN_STRESS_DIFFERENTIAL_FILES_H
#define RTSPAN_STRESS_DIFFERENTIAL_FILES_H

#include <string>
#include <vector>

#include "op.h"

namespace stress {

// Of a folder, the files in it, by name. All end the program with a message and exit status 2 where that fails.
std::vector<std::string> list_files(const std::string& path);
Program read_program(const std::string& path);
void write_program(const std::string& path, const Program& program);

}  // namespace stress

#endif
