#include "programs/shell/bash.h"

#include <unistd.h>

#include <array>

#include "os/process.h"

namespace cloister::shell {
namespace {

constexpr std::array kPlaces = {"/bin/bash", "/usr/bin/bash", "/usr/local/bin/bash"};

std::vector<char*> pointers_to(const std::vector<std::string>& texts) {
    std::vector<char*> pointers;
    pointers.reserve(texts.size() + 1);
    for (const std::string& text : texts) pointers.push_back(const_cast<char*>(text.c_str()));
    pointers.push_back(nullptr);
    return pointers;
}

}  // namespace

Result<std::string> find_bash() {
    for (const char* place : kPlaces) {
        if (::access(place, X_OK) == 0) return std::string(place);
    }
    return make_error(ErrorKind::NotFound,
                      "there is no bash in this template: install it, or use another language");
}

void execute_bash(const std::string& path, const std::vector<std::string>& words,
                  const std::vector<std::string>* env) {
    os::reset_signals();
    ::close_range(3, ~0U, 0);
    std::vector<char*> argv = pointers_to(words);
    std::vector<char*> variables;
    if (env != nullptr) variables = pointers_to(*env);
    ::execve(path.c_str(), argv.data(), env != nullptr ? variables.data() : environ);
    ::_exit(127);
}

}  // namespace cloister::shell
