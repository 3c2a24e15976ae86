#include "programs/cli/remote_path.h"

#include <fmt/format.h>

#include "base/ids.h"
#include "programs/cli/api.h"

namespace cloister::cli {

CopyPlace copy_place(std::string_view word) {
    const size_t colon = word.find(':');
    const std::string_view id = word.substr(0, colon);
    if (!is_id(id)) return {.sandbox = {}, .path = std::string(word)};
    std::string path(colon == std::string_view::npos ? "" : word.substr(colon + 1));
    return {.sandbox = std::string(id), .path = path.empty() ? "/home/user" : std::move(path)};
}

std::string files_target(const CopyPlace& place, std::string_view operation,
                         const std::string& user) {
    std::string target = fmt::format("/v1/sandboxes/{}/files{}?path={}", place.sandbox, operation,
                                     percent_encode(place.path));
    if (!user.empty()) target += "&user=" + percent_encode(user);
    return target;
}

std::string last_part(std::string path) {
    while (path.size() > 1 && path.ends_with('/')) path.pop_back();
    return path.substr(path.rfind('/') + 1);
}

}  // namespace cloister::cli
