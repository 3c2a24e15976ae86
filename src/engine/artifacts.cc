#include "engine/artifacts.h"

#include <fmt/format.h>

#include <chrono>
#include <cstdio>
#include <filesystem>
#include <utility>
#include <variant>

#include "base/limits.h"
#include "base/log.h"

namespace cloister::engine {
namespace {

namespace fs = std::filesystem;

struct CloseFile {
    void operator()(std::FILE* file) const { std::fclose(file); }
};
using File = std::shared_ptr<std::FILE>;

File open_plain(const std::string& path, const char* mode) {
    std::FILE* file = std::fopen(path.c_str(), mode);
    return file == nullptr ? nullptr : File(file, CloseFile());
}

Result<File> create_plain(const std::string& path) {
    std::error_code failure;
    fs::create_directories(fs::path(path).parent_path(), failure);
    File file = open_plain(path, "wbe");
    if (!file) return last_os_failure("creating a file for an artifact");
    return file;
}

Result<std::string> read_piece(const File& file) {
    std::string piece(limits::kStreamChunk, '\0');
    piece.resize(std::fread(piece.data(), 1, piece.size(), file.get()));
    if (std::ferror(file.get()) != 0) return last_os_failure("reading an artifact");
    return piece;
}

Result<void> write_piece(const File& file, const std::string& piece) {
    if (std::fwrite(piece.data(), 1, piece.size(), file.get()) == piece.size()) return {};
    return last_os_failure("writing an artifact");
}

Task<Result<std::string>> next_piece(File file) {
    co_return co_await on_worker([file] { return read_piece(file); });
}

Task<Result<uint64_t>> copy(File target, OpenFile file, uint64_t max_bytes) {
    uint64_t size = 0;
    for (;;) {
        const Result<std::string> piece = co_await file.next();
        if (!piece) co_return piece.error();
        if (piece->empty()) co_return size;
        size += piece->size();
        if (size > max_bytes)
            co_return make_error(ErrorKind::TooLarge, "the artifact is too large to keep");
        const Result<void> written =
            co_await on_worker([target, &piece] { return write_piece(target, *piece); });
        if (!written) co_return written.error();
    }
}

void remove_old(const std::string& directory) {
    const auto oldest =
        fs::file_time_type::clock::now() - std::chrono::milliseconds(limits::kArtifactKeepMs);
    std::error_code failure;
    for (const auto& entry : fs::directory_iterator(directory, failure)) {
        const auto changed = fs::last_write_time(entry.path(), failure);
        if (!failure && changed < oldest) fs::remove_all(entry.path(), failure);
    }
}

}  // namespace

std::string Artifacts::path_of(const std::string& run, size_t index) const {
    return fmt::format("{}/{}/{}", directory_, run, index);
}

Task<Result<uint64_t>> Artifacts::keep(std::string run, size_t index, OpenFile file,
                                       uint64_t max_bytes) const {
    const std::string path = path_of(run, index);
    const std::string unfinished = path + ".part";
    const Result<File> target =
        co_await on_worker([&unfinished] { return create_plain(unfinished); });
    if (!target) co_return target.error();
    Result<uint64_t> size = co_await copy(*target, std::move(file), max_bytes);
    if (size && std::fflush(target->get()) != 0) size = last_os_failure("writing an artifact");
    std::error_code failure;
    if (size) {
        fs::rename(unfinished, path, failure);
    } else {
        fs::remove(unfinished, failure);
    }
    if (size && failure) co_return os_failure("keeping an artifact", failure.value());
    co_return size;
}

Task<Result<OpenFile>> Artifacts::open(std::string run, size_t index) const {
    const std::string path = path_of(run, index);
    File file = open_plain(path, "rbe");
    std::error_code failure;
    const uint64_t size = fs::file_size(path, failure);
    if (!file || failure) {
        co_return make_error(
            ErrorKind::NotFound,
            "this artifact is not kept (any more): they go after an hour, or with their sandbox");
    }
    OpenFile out{.size = size, .next = [file] { return next_piece(file); }};
    co_return out;
}

Task<void> Artifacts::expire() const {
    const std::string directory = directory_;
    const auto removed = co_await on_worker([directory] {
        remove_old(directory);
        return std::monostate();
    });
    (void)removed;
}

}  // namespace cloister::engine
