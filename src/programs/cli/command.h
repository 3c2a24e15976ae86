// The verbs of `cloister`. Each takes the words behind its name and answers the exit code.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/result.h"

namespace CLI {
class App;
}

namespace cloister::cli {

using Words = std::vector<std::string>;

int run_command(const Words& words);
int exec_command(const Words& words);
int shell_command(const Words& words);
int port_command(const Words& words);
int serve_command(const Words& words);
int status_command(const Words& words);
int doctor_command(const Words& words);
int stop_command(const Words& words);
int cp_command(const Words& words);
int ls_command(const Words& words);
int df_command(const Words& words);
int pool_command(const Words& words);
int context_command(const Words& words);
int key_command(const Words& words);
int ps_command(const Words& words);
int pause_command(const Words& words);
int resume_command(const Words& words);
int kill_command(const Words& words);
int net_command(const Words& words);
int version_command(const Words& words);

// Parses `words` into the variables that `app` is bound to. nullopt: go on; else the exit code (0
// after --help).
std::optional<int> parse_words(CLI::App& app, Words words);

}  // namespace cloister::cli
