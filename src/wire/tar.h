// Archives of files as tar writes them (POSIX ustar with pax headers; GNU's long names are read).
// Sans I/O: headers to bytes, bytes to entries.
//
//     TarDecoder tar;
//     tar.feed(bytes);
//     while (auto part = TRY(tar.next())) …     // an entry, then pieces of its content; nullopt:
//     feed more if (!tar.finished()) …                    // it broke off
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "base/limits.h"
#include "base/result.h"

namespace cloister {

enum class TarKind { File, Directory, Symlink, HardLink };

struct TarEntry {
    TarKind kind = TarKind::File;
    std::string path;    // as it stands in the archive, without "/" at its end
    std::string target;  // of links
    uint64_t size = 0;   // of a file's content
    uint32_t mode = 0644;
    uint32_t uid = 0, gid = 0;
    int64_t modified = 0;  // seconds since the epoch
};

// The header of an entry; its content follows, then tar_padding(size).
std::string tar_header(const TarEntry& entry);
std::string tar_padding(uint64_t size);
// The end of an archive.
std::string tar_end();

class TarDecoder {
  public:
    struct Content {
        std::string_view bytes;  // valid until the next feed()
    };
    using Part = std::variant<TarEntry, Content>;

    void feed(std::string_view bytes);
    // The next part; nullopt if more bytes are needed, or after the archive's end. InvalidArgument
    // for what is no tar, or has entries that are neither files, directories nor links.
    Result<std::optional<Part>> next();
    // Whether the end of the archive, or of its last entry, has been reached.
    bool finished() const;
    bool ended() const { return ended_; }

  private:
    Result<std::optional<Part>> header(std::string_view block);
    Result<void> take_extension(std::string_view text);
    Result<void> take_pax(std::string_view text);
    Result<TarEntry> entry_of(std::string_view block);
    std::string_view rest() const { return std::string_view(buffer_).substr(used_); }

    std::string buffer_;
    size_t used_ = 0;
    uint64_t content_left_ = 0;
    uint64_t padding_left_ = 0;
    int zero_blocks_ = 0;
    bool ended_ = false;
    bool began_ = false;
    // What extension headers say about the next entry.
    char extension_ = 0;  // the one whose content comes now
    std::string extension_text_;
    std::map<std::string, std::string, std::less<>> pax_;
};

}  // namespace cloister
