// Makes a URL that reads or writes one file without a key, until it expires.
#pragma once

#include "engine/signed_url.h"
#include "ops/file_access.h"

namespace cloister::ops {

struct SignedFile {
    std::string path;       // as it was asked for
    std::string signature;  // for the query
    int64_t expires_ms = 0;
};
Result<SignedFile> sign_file(engine::Engine& engine, const engine::Principal& caller,
                             const FileInput& input, engine::FileAccess access,
                             int64_t lifetime_ms);

}  // namespace cloister::ops
