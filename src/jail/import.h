// Bringing an image and the sandbox runtime into the pool. Each import is made beside its place and
// renamed when it is whole and on disk: killed at any point, the next try starts over.
#pragma once

#include <string>

#include "jail/pool.h"

namespace cloister::jail {

// What the name of an image file says.
struct ImageName {
    std::string built_in;  // the template's name
    std::string revision;
    std::string base;  // for a layer: the revision that it lies on; else empty
};
// base-f4b51292141f.tar.zst → base, basef4b51292141f0000;
// polyglot-0123456789ab-f4b51292141f.tar.zst → polyglot, polyglot0123456789ab, and that base.
Result<ImageName> name_of_image(const std::string& path);

struct Imported {
    std::string id;
    bool was_there = false;
    uint64_t foreign_ids =
        0;  // files whose owner is beyond what a sandbox maps; they show as nobody inside
};

// Unpacks a .tar.zst as the template that its name tells, and makes it the built-in one. A layer is
// unpacked over a snapshot of its base, which must be there. Device nodes are refused.
Result<Imported> import_image(const Pool& pool, const std::string& path);

// Copies the runtime tree (agent and drivers). Its id is a digest of names and contents, so that
// each build of it is one runtime.
// `ca_bundle`: a file of certificates that comes along as layout::kCaBundle, or empty.
Result<Imported> import_runtime(const Pool& pool, const std::string& directory,
                                const std::string& ca_bundle = {});

}  // namespace cloister::jail
