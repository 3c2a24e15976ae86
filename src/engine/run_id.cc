#include "engine/run_id.h"

#include <openssl/sha.h>

#include <array>

#include "base/ids.h"

namespace cloister::engine {

std::string run_id_for(std::string_view project, std::string_view sandbox, std::string_view key,
                       std::string_view code) {
    if (key.empty()) return new_id();
    constexpr std::string_view kAlphabet = "abcdefghijklmnopqrstuvwxyz0123456789";
    constexpr size_t kLetters = 26;  // an id begins with one
    // The length tells where the key ends.
    std::string text(project);
    text.append("/").append(sandbox).append("/").append(std::to_string(key.size()));
    text.append("/").append(key).append(code);
    std::array<unsigned char, SHA256_DIGEST_LENGTH> digest{};
    SHA256(reinterpret_cast<const unsigned char*>(text.data()), text.size(), digest.data());
    std::string id;
    for (size_t i = 0; i < kIdLength; ++i)
        id += kAlphabet[digest[i] % (i == 0 ? kLetters : kAlphabet.size())];
    return id;
}

}  // namespace cloister::engine
