// The verdict on a run, and the line of JSON about it.
#pragma once

#include <string>

#include "options.h"
#include "shared_page.h"
#include "watchdog.h"

struct Judgement {
    Verdict verdict;
    std::string sentence;
};

Judgement judge(const SharedPage& page, const Outcome& outcome);
void print_json(const Options& options, const std::string& allocator, const SharedPage& page,
                const Judgement& judgement);
