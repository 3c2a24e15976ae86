#include "ops/upload_files.h"

#include <fmt/format.h>

#include <set>
#include <utility>

#include "base/limits.h"
#include "ops/validate.h"
#include "wire/file_limits.h"

namespace cloister::ops {
namespace {

std::string below(const std::string& directory, const std::string& path) {
    if (path.starts_with('/')) return path;
    return directory.ends_with('/') ? directory + path : directory + "/" + path;
}

Result<void> check_next(const std::string& path, std::set<std::string>& paths) {
    TRY_OK(check_path("file", path));
    if (paths.size() == limits::kFilesPerUpload) {
        return make_error(ErrorKind::TooLarge,
                          fmt::format("one upload has at most {} files", limits::kFilesPerUpload));
    }
    if (paths.insert(absolute(path)).second) return {};
    return invalid_field("file", fmt::format("{} comes twice in this upload", path));
}

}  // namespace

Task<Result<std::vector<WrittenFile>>> upload_files(engine::Engine& engine,
                                                    engine::Principal caller, FileInput input,
                                                    engine::WriteSettings settings,
                                                    IncomingFiles files) {
    std::vector<WrittenFile> written;
    std::set<std::string> paths;
    for (;;) {
        auto file = co_await files();
        if (!file) co_return std::move(file).error();
        if (!*file) co_return written;
        FileInput one = input;
        one.path = below(input.path, (*file)->path);
        const Result<void> good = check_next(one.path, paths);
        if (!good) co_return good.error();
        auto done = co_await write_file(engine, caller, std::move(one), settings,
                                        std::move((*file)->source));
        if (!done) co_return Error(done.error()).within((*file)->path);
        written.push_back(std::move(*done));
    }
}

}  // namespace cloister::ops
