// What requests about files say, in the query, in headers or in a JSON body.
#pragma once

#include <string>
#include <string_view>

#include "engine/files.h"
#include "engine/signed_url.h"
#include "faces/rest/call.h"
#include "ops/change_file.h"
#include "ops/copy_file.h"
#include "ops/file_access.h"
#include "ops/list_files.h"
#include "ops/make_directory.h"
#include "ops/move_file.h"
#include "ops/search_files.h"

namespace cloister::rest {

// `path` and `user` of the query; `otherwise`: the path if none is named, empty: it must be.
Result<ops::FileInput> file_input(const Call& call, std::string_view otherwise = {});
// A word of the query; an error if it is neither "true" nor "false".
Result<bool> query_flag(const Call& call, std::string_view name);
Result<engine::WriteSettings> write_settings(const Call& call);
Result<ops::ListSettings> list_settings(const Call& call);
Result<ops::SearchSettings> search_settings(const Call& call);

// JSON bodies.
struct MakeDirectoryBody {
    ops::FileInput input;
    ops::DirectorySettings settings;
};
Result<MakeDirectoryBody> decode_make_directory(std::string_view body, const std::string& sandbox);
struct MoveBody {
    ops::FileInput input;
    ops::MoveSettings settings;
};
Result<MoveBody> decode_move(std::string_view body, const std::string& sandbox);
struct CopyBody {
    ops::FileInput input;
    ops::CopySettings settings;
};
Result<CopyBody> decode_copy(std::string_view body, const std::string& sandbox);
Result<ops::FileChange> decode_change(std::string_view body);
struct SignBody {
    ops::FileInput input;
    engine::FileAccess access = engine::FileAccess::Read;
    int64_t lifetime_ms = 0;
};
Result<SignBody> decode_sign(std::string_view body, const std::string& sandbox);

json::object entry_json(const engine::FileEntry& entry);
// "0644"
std::string mode_text(uint32_t mode);

}  // namespace cloister::rest
