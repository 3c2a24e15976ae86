// KeyRing: the API keys of all projects, in memory, by their hashes. The text of a key is seen only
// when it is made and when it is checked.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "store/store.h"

namespace cloister::engine {

// Who calls: every lookup of an operation is by this project.
struct Principal {
    std::string project;
    std::string key_id;
};

// What an answer says about a key.
struct KeyInfo {
    std::string id, name, prefix;
    int64_t created_ms = 0;
    std::optional<int64_t> last_used_ms;
};

struct NewKey {
    KeyInfo info;
    std::string text;
};

class KeyRing {
  public:
    static Result<std::unique_ptr<KeyRing>> load(std::shared_ptr<store::Store> store);

    // Unauthenticated, with what to do, unless `text` is a key that is not revoked. Hashes are
    // compared in constant time.
    Result<Principal> check(std::string_view text);
    // Whether this key of the project is there and not revoked.
    bool is_valid(const Principal& principal) const;
    Result<NewKey> create(const std::string& project, const std::string& name);
    // Enters a key that the caller chose; nothing if it is there already (also if it was revoked).
    Result<void> ensure(const std::string& project, const std::string& name,
                        const std::string& text);
    std::vector<KeyInfo> list(std::string_view project) const;  // without revoked ones
    // NotFound; FailedPrecondition for the last key of a project.
    Result<void> revoke(std::string_view project, std::string_view id);

  private:
    explicit KeyRing(std::shared_ptr<store::Store> store) : store_(std::move(store)) {}
    store::KeyRow* find(std::string_view text);
    Result<store::KeyRow> add(const std::string& project, const std::string& name,
                              const std::string& text);
    void touch(store::KeyRow& key);

    const std::shared_ptr<store::Store> store_;
    std::vector<store::KeyRow> keys_;
};

}  // namespace cloister::engine
