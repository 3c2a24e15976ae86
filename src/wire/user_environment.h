// The environment that every interpreter begins with, before that of its sandbox is laid over it.
#pragma once

#include <array>
#include <string_view>
#include <utility>

namespace cloister {

inline constexpr std::string_view kUserHome = "/home/user";

inline constexpr std::array<std::pair<std::string_view, std::string_view>, 8> kUserEnvironment = {{
    {"HOME", kUserHome},
    {"USER", "user"},
    {"LOGNAME", "user"},
    {"SHELL", "/bin/bash"},
    {"PATH", "/home/user/.local/bin:/usr/local/bin:/usr/bin:/bin:/usr/local/sbin:/usr/sbin:/sbin"},
    {"LANG", "C.UTF-8"},
    {"TERM", "dumb"},           // no colours, no cursor movements
    {"PYTHONUNBUFFERED", "1"},  // what child processes print is live too
}};

}  // namespace cloister
