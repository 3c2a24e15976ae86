// What the operations on files share: the sandbox that is meant, and the words of their errors.
#pragma once

#include <memory>
#include <string>

#include "engine/engine.h"
#include "engine/files.h"

namespace cloister::ops {

struct FileInput {
    std::string sandbox_id;
    std::string path;
    std::string user = "user";  // or "root"
};

// The sandbox of `input`, whose path and user are checked. `field` is the path's.
Result<std::shared_ptr<engine::Sandbox>> find_for_file(engine::Engine& engine,
                                                       const engine::Principal& caller,
                                                       const FileInput& input,
                                                       std::string_view field = "path");
// The same, and it runs as long as the Use lives.
Task<Result<engine::Awake>> awaken_for_file(engine::Engine& engine, engine::Principal caller,
                                            FileInput input);
engine::FileTarget target_of(FileInput input);
// An agent's error about a file in our words: NotFound, AlreadyExists and FailedPrecondition as
// they are, a full disk as TooLarge, and the rest with `path` as the field at fault.
Error of_file(Error error);
// Asks the agent one question; the answer is not checked yet.
Task<Result<json::object>> ask_about_file(engine::Engine& engine, engine::Principal caller,
                                          FileInput input, json::object request);
// The same for an answer that is an entry.
Task<Result<engine::FileEntry>> ask_for_entry(engine::Engine& engine, engine::Principal caller,
                                              FileInput input, json::object request);
// Entries of an array of an agent's answer.
Result<std::vector<engine::FileEntry>> entries_in(const json::value* list);

}  // namespace cloister::ops
