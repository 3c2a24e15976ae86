// Bringing an image and the sandbox runtime into the pool. Each import is made beside its place and
// renamed when it is whole and on disk: killed at any point, the next try starts over.
#pragma once

#include <string>

#include "jail/pool.h"

namespace cloister::jail {

// The template revision of an image file: base-f4b51292141f.tar.zst → basef4b51292141f0000.
Result<std::string> revision_of_image(const std::string& path);

struct Imported {
    std::string id;
    bool was_there = false;
    uint64_t foreign_ids =
        0;  // files whose owner is beyond what a sandbox maps; they show as nobody inside
};

// Unpacks a .tar.zst as template `revision_of_image(path)`, and makes it the built-in one. Device
// nodes are refused.
Result<Imported> import_image(const Pool& pool, const std::string& path);

// Copies the runtime tree (agent and drivers). Its id is a digest of names and contents, so that
// each build of it is one runtime.
// `ca_bundle`: a file of certificates that comes along as layout::kCaBundle, or empty.
Result<Imported> import_runtime(const Pool& pool, const std::string& directory,
                                const std::string& ca_bundle = {});

}  // namespace cloister::jail
