// The forms of arguments that `cloister` reads: durations, sizes, K=V, PATH:DEST, and where the
// program's own begin.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"

namespace cloister::cli {

// "1.5" (seconds), "500ms", "2s", "5m", "1h" → milliseconds; at least 1, at most
// limits::kRunTimeoutMaxMs.
Result<int64_t> parse_duration_ms(std::string_view text);
// "512" (MB), "512M", "2G" → MB.
Result<int64_t> parse_megabytes(std::string_view text);
// "20G", "1.5T" → bytes, in units of 1024.
Result<uint64_t> parse_pool_bytes(std::string_view text);
// "4096" (bytes), "64K", "10M", "1G" → bytes.
Result<int64_t> parse_bytes(std::string_view text);
// "NAME=value"; the value may be empty or hold further "=".
Result<std::pair<std::string, std::string>> parse_env(std::string_view text);

struct FileArgument {
    std::string local;   // the path here
    std::string remote;  // in the sandbox, relative to /home/user or absolute
};
// "PATH" (beside the script, under its own name) or "PATH:DEST" (a DEST that ends in "/" is a
// directory).
Result<FileArgument> parse_file_argument(std::string_view text);

// What `run` is to run, cut off from the options before it: all that follows belongs to the
// program.
struct ProgramWords {
    enum class Source { File, Code, Stdin };
    std::vector<std::string> options;
    Source source = Source::File;
    std::string program;                 // the path, or the code
    std::vector<std::string> arguments;  // of the program
};
// `takes_value` says whether an option ("--timeout") eats the word behind it.
Result<ProgramWords> split_program(const std::vector<std::string>& words,
                                   const std::function<bool(const std::string&)>& takes_value);

}  // namespace cloister::cli
