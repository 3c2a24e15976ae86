// Places of `cloister cp` and `cloister ls`: "SANDBOX:PATH", a path of this machine, or "-".
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "wire/json.h"

namespace cloister::cli {

struct CopyPlace {
    std::string sandbox;  // empty: here
    std::string path;     // "-": standard input or output
    bool remote() const { return !sandbox.empty(); }
};
// What has an id before its first colon is in a sandbox; without a path it is /home/user.
CopyPlace copy_place(std::string_view word);
// "/v1/sandboxes/ID/files/stat?path=…"; `operation` is empty or "/stat" or the like.
std::string files_target(const CopyPlace& place, std::string_view operation,
                         const std::string& user);
// "a/b/" → "b"
std::string last_part(std::string path);

}  // namespace cloister::cli
