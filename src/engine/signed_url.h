// UrlSigner: URLs that allow one kind of access to one file of one sandbox, without a key, until
// they expire. They end earlier with the key that asked for them.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"
#include "engine/keys.h"

namespace cloister::engine {

enum class FileAccess { Read, Write };

// What a signature is about.
struct Grant {
    Principal caller;  // who asked for it
    std::string sandbox;
    std::string path;  // as it stands in the URL
    FileAccess access = FileAccess::Read;
    std::string user;
    int64_t expires_ms = 0;  // since the epoch
};

class UrlSigner {
  public:
    // The secret lies in `directory`, so that signatures outlive the server.
    static Result<std::unique_ptr<UrlSigner>> load(const std::string& directory);

    // Letters, digits, dots: fit for a query.
    std::string sign(const Grant& grant) const;
    // The grant of a signature on a request for `sandbox` and `path`; PermissionDenied if it was
    // not made here for just that, or has expired.
    Result<Grant> check(std::string_view signature, std::string_view sandbox, std::string_view path,
                        FileAccess access, int64_t now_ms) const;

  private:
    UrlSigner() = default;
    std::string mac(const Grant& grant) const;

    std::array<unsigned char, 32> secret_{};
};

}  // namespace cloister::engine
