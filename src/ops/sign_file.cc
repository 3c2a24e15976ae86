#include "ops/sign_file.h"

#include "base/time.h"

namespace cloister::ops {

Result<SignedFile> sign_file(engine::Engine& engine, const engine::Principal& caller,
                             const FileInput& input, engine::FileAccess access,
                             int64_t lifetime_ms) {
    TRY(find_for_file(engine, caller, input));
    const engine::Grant grant{.caller = caller,
                              .sandbox = input.sandbox_id,
                              .path = input.path,
                              .access = access,
                              .user = input.user,
                              .expires_ms = unix_ms() + lifetime_ms};
    return SignedFile{.path = input.path,
                      .signature = engine.url_signer().sign(grant),
                      .expires_ms = grant.expires_ms};
}

}  // namespace cloister::ops
