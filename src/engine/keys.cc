#include "engine/keys.h"

#include <fmt/format.h>
#include <openssl/crypto.h>
#include <openssl/sha.h>

#include <algorithm>
#include <array>
#include <utility>

#include "base/ids.h"
#include "base/limits.h"
#include "base/log.h"
#include "base/time.h"

namespace cloister::engine {
namespace {

constexpr size_t kPrefixAt = 4;  // behind "e2b_"
constexpr size_t kPrefixLength = 8;
constexpr int64_t kTouchEveryMs = 60'000;  // last_used_at is written this often at most

std::string hash_of(std::string_view text) {
    std::array<unsigned char, SHA256_DIGEST_LENGTH> digest{};
    SHA256(reinterpret_cast<const unsigned char*>(text.data()), text.size(), digest.data());
    std::string hex;
    for (const unsigned char byte : digest) hex += fmt::format("{:02x}", byte);
    return hex;
}

bool same(const std::string& a, const std::string& b) {
    return a.size() == b.size() && CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

KeyInfo info_of(const store::KeyRow& key) {
    return {.id = key.id,
            .name = key.name,
            .prefix = key.prefix,
            .created_ms = key.created_ms,
            .last_used_ms = key.last_used_ms};
}

Error not_a_key() {
    return make_error(
        ErrorKind::Unauthenticated,
        "this is not a valid key, or it was revoked: send `Authorization: Bearer e2b_…` with a key "
        "of `cloister key create`");
}

}  // namespace

Result<std::unique_ptr<KeyRing>> KeyRing::load(std::shared_ptr<store::Store> store) {
    std::unique_ptr<KeyRing> ring(new KeyRing(std::move(store)));
    ring->keys_ = TRY(ring->store_->all_keys());
    return ring;
}

// The prefix is no secret (lists show it), so looking it up may take any time; the rest is compared
// as a whole.
store::KeyRow* KeyRing::find(std::string_view text) {
    const std::string_view prefix = text.substr(kPrefixAt, kPrefixLength);
    const std::string hash = hash_of(text);
    for (store::KeyRow& key : keys_) {
        if (key.prefix == prefix && same(key.hash, hash)) return &key;
    }
    return nullptr;
}

Result<Principal> KeyRing::check(std::string_view text) {
    if (!is_api_key(text)) return not_a_key();
    store::KeyRow* key = find(text);
    if (key == nullptr || key->revoked_ms) return not_a_key();
    touch(*key);
    return Principal{.project = key->project, .key_id = key->id};
}

void KeyRing::touch(store::KeyRow& key) {
    const int64_t now = unix_ms();
    if (key.last_used_ms && now - *key.last_used_ms < kTouchEveryMs) return;
    key.last_used_ms = now;
    const Result<void> stored = store_->touch_key(key.project, key.id, now);
    if (!stored) log_warn("a key's use was not stored", {{"error", stored.error().message}});
}

Result<store::KeyRow> KeyRing::add(const std::string& project, const std::string& name,
                                   const std::string& text) {
    store::KeyRow row{.project = project,
                      .id = new_id(),
                      .hash = hash_of(text),
                      .prefix = text.substr(kPrefixAt, kPrefixLength),
                      .name = name,
                      .created_ms = unix_ms()};
    TRY_OK(store_->add_key(row));
    keys_.push_back(row);
    return row;
}

Result<NewKey> KeyRing::create(const std::string& project, const std::string& name) {
    const auto live = list(project);
    if (live.size() >= limits::kKeysMax) {
        return make_error(ErrorKind::ResourceExhausted,
                          fmt::format("the project has {} keys: revoke some first", live.size()));
    }
    const std::string text = new_api_key();
    return NewKey{.info = info_of(TRY(add(project, name, text))), .text = text};
}

Result<void> KeyRing::ensure(const std::string& project, const std::string& name,
                             const std::string& text) {
    if (!is_api_key(text)) {
        return make_error(
            ErrorKind::InvalidArgument,
            "a key is `e2b_` and 40 hex digits in lower case: `cloister key create` makes one");
    }
    if (find(text) == nullptr) (void)TRY(add(project, name, text));
    return {};
}

bool KeyRing::is_valid(const Principal& principal) const {
    return std::ranges::any_of(list(principal.project), [&principal](const KeyInfo& key) {
        return key.id == principal.key_id;
    });
}

std::vector<KeyInfo> KeyRing::list(std::string_view project) const {
    std::vector<KeyInfo> out;
    for (const store::KeyRow& key : keys_) {
        if (key.project == project && !key.revoked_ms) out.push_back(info_of(key));
    }
    return out;
}

Result<void> KeyRing::revoke(std::string_view project, std::string_view id) {
    const auto found = std::ranges::find_if(keys_, [&](const store::KeyRow& key) {
        return key.project == project && key.id == id && !key.revoked_ms;
    });
    if (found == keys_.end()) {
        return make_error(
            ErrorKind::NotFound,
            fmt::format("no key `{}` in this project: `cloister key list` shows them", id));
    }
    if (list(project).size() == 1) {
        return make_error(ErrorKind::FailedPrecondition,
                          "this is the project's last key: create another one first");
    }
    TRY_OK(store_->revoke_key(project, id, unix_ms()));
    found->revoked_ms = unix_ms();
    return {};
}

}  // namespace cloister::engine
