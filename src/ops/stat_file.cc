#include "ops/stat_file.h"

#include <utility>

#include "ops/validate.h"

namespace cloister::ops {

Task<Result<engine::FileEntry>> stat_file(engine::Engine& engine, engine::Principal caller,
                                          FileInput input, FollowLink follow) {
    json::object request{{"op", "file.stat"}, {"follow", follow == FollowLink::Yes}};
    co_return co_await ask_for_entry(engine, std::move(caller), std::move(input),
                                     std::move(request));
}

}  // namespace cloister::ops
