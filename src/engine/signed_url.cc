#include "engine/signed_url.h"

#include <fmt/format.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>

#include <algorithm>
#include <cerrno>
#include <vector>

#include "base/ids.h"
#include "base/number.h"
#include "os/fd.h"

namespace cloister::engine {
namespace {

constexpr size_t kParts = 7;

std::string_view word(FileAccess access) {
    return access == FileAccess::Read ? "r" : "w";
}

std::vector<std::string> parts_of(std::string_view text) {
    std::vector<std::string> parts;
    while (parts.size() <= kParts) {
        const size_t dot = text.find('.');
        parts.emplace_back(text.substr(0, dot));
        if (dot == std::string_view::npos) break;
        text.remove_prefix(dot + 1);
    }
    return parts;
}

Error refused(std::string_view why) {
    return make_error(ErrorKind::PermissionDenied,
                      fmt::format("the signature of this URL {}: ask for a new one", why));
}

}  // namespace

Result<std::unique_ptr<UrlSigner>> UrlSigner::load(const std::string& directory) {
    const std::string path = directory + "/signing.key";
    std::unique_ptr<UrlSigner> signer(new UrlSigner);
    auto& secret = signer->secret_;
    auto kept = os::read_file(path, 1024);
    if (!kept && kept.error().os_error != ENOENT) return std::move(kept).error();
    if (kept && kept->size() == secret.size()) {
        std::ranges::copy(*kept, secret.begin());
        return signer;
    }
    random_bytes(secret);
    TRY_OK(os::write_file_atomically(
        path, {reinterpret_cast<const char*>(secret.data()), secret.size()}, 0600));
    return signer;
}

// Each part behind its length, so that no two grants read the same.
std::string UrlSigner::mac(const Grant& grant) const {
    std::string text = "cloister file 1";
    const std::string expires = std::to_string(grant.expires_ms);
    for (const std::string_view part :
         {std::string_view(grant.caller.project), std::string_view(grant.caller.key_id),
          std::string_view(grant.sandbox), std::string_view(grant.path), word(grant.access),
          std::string_view(grant.user), std::string_view(expires)}) {
        text += fmt::format("\n{}:{}", part.size(), part);
    }
    std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
    unsigned size = 0;
    ::HMAC(::EVP_sha256(), secret_.data(), static_cast<int>(secret_.size()),
           reinterpret_cast<const unsigned char*>(text.data()), text.size(), digest.data(), &size);
    std::string hex;
    for (unsigned i = 0; i < size; ++i) hex += fmt::format("{:02x}", digest[i]);
    return hex;
}

std::string UrlSigner::sign(const Grant& grant) const {
    return fmt::format("v1.{}.{}.{}.{}.{}.{}", grant.expires_ms, word(grant.access), grant.user,
                       grant.caller.project, grant.caller.key_id, mac(grant));
}

Result<Grant> UrlSigner::check(std::string_view signature, std::string_view sandbox,
                               std::string_view path, FileAccess access, int64_t now_ms) const {
    const std::vector<std::string> parts = parts_of(signature);
    const auto expires = parts.size() == kParts ? whole_number<int64_t>(parts[1]) : std::nullopt;
    if (!expires || parts[0] != "v1") return refused("is not one of ours");
    Grant grant{.caller = {.project = parts[4], .key_id = parts[5]},
                .sandbox = std::string(sandbox),
                .path = std::string(path),
                .access = access,
                .user = parts[3],
                .expires_ms = *expires};
    const std::string expected = mac(grant);
    const std::string& given = parts[6];
    const bool same = parts[2] == word(access) && given.size() == expected.size() &&
                      CRYPTO_memcmp(given.data(), expected.data(), expected.size()) == 0;
    if (!same) return refused("does not belong to this sandbox, path and method");
    if (now_ms >= *expires) return refused("has expired");
    return grant;
}

}  // namespace cloister::engine
