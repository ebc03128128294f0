// The verdict, the table for people and the JSON for programs.
#pragma once

#include <string>

#include "options.h"
#include "watchdog.h"

struct Judgement {
    Verdict verdict;
    std::string sentence;
};

Judgement judge(const SharedPage& page, const Outcome& outcome);
void print_start(const Options& options, const std::string& allocator);
void print_result(const Options& options, const SharedPage& page, const Judgement& judgement);
bool write_json(const Options& options, const std::string& allocator, const SharedPage& page, const Outcome& outcome,
                const Judgement& judgement);
