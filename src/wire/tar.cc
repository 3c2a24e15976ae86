#include "wire/tar.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "base/number.h"

namespace cloister {
namespace {

constexpr size_t kBlock = 512;
// Of a pax header or a long name: a path of the largest size, a target, and room for the rest.
constexpr uint64_t kExtensionMax = 64 * limits::kKiB;
constexpr uint64_t kOctalSizeMax = 077777777777;

// Fields of a ustar header: where, and how long.
struct Field {
    size_t at, size;
};
constexpr Field kName{0, 100}, kMode{100, 8}, kUid{108, 8}, kGid{116, 8}, kSize{124, 12},
    kModified{136, 12}, kChecksum{148, 8}, kTarget{157, 100}, kMagic{257, 8}, kPrefix{345, 155};
constexpr size_t kTypeAt = 156;

std::string_view text_of(std::string_view block, Field field) {
    const std::string_view text = block.substr(field.at, field.size);
    return text.substr(0, text.find('\0'));
}

void put(std::string& block, Field field, std::string_view text) {
    std::memcpy(block.data() + field.at, text.data(), std::min(text.size(), field.size));
}

void put_octal(std::string& block, Field field, uint64_t number) {
    put(block, field, fmt::format("{:0{}o}", number, field.size - 1));
}

Error no_tar(std::string_view why) {
    return make_error(ErrorKind::InvalidArgument, fmt::format("this is no tar archive: {}", why));
}

// Octal digits between spaces; or, as GNU and others write large ones, a binary number.
Result<uint64_t> number_of(std::string_view block, Field field) {
    std::string_view text = block.substr(field.at, field.size);
    if ((static_cast<unsigned char>(text[0]) & 0x80) != 0) {
        uint64_t number = static_cast<unsigned char>(text[0]) & 0x7F;
        for (const char c : text.substr(1)) {
            if (number >> 55 != 0) return no_tar("a number is too large");
            number = number << 8 | static_cast<unsigned char>(c);
        }
        return number;
    }
    uint64_t number = 0;
    bool digits = false;
    for (const char c : text) {
        if (c >= '0' && c <= '7') {
            number = number << 3 | static_cast<uint64_t>(c - '0');
            digits = true;
        } else if (c == '\0' || (c == ' ' && digits)) {
            break;
        } else if (c != ' ') {
            return no_tar("a number is none");
        }
    }
    return number;
}

// The sum of all bytes, the checksum's own counted as spaces.
uint64_t checksum_of(std::string_view block) {
    uint64_t sum = 0;
    for (size_t i = 0; i < block.size(); ++i) {
        const bool own = i >= kChecksum.at && i < kChecksum.at + kChecksum.size;
        sum += own ? ' ' : static_cast<unsigned char>(block[i]);
    }
    return sum;
}

std::string header_block(char type, const TarEntry& entry) {
    std::string block(kBlock, '\0');
    put(block, kName, entry.path);
    put_octal(block, kMode, entry.mode & 07777);
    put_octal(block, kUid, std::min<uint64_t>(entry.uid, 07777777));
    put_octal(block, kGid, std::min<uint64_t>(entry.gid, 07777777));
    put_octal(block, kSize, std::min(entry.size, kOctalSizeMax));
    put_octal(block, kModified,
              static_cast<uint64_t>(std::clamp<int64_t>(entry.modified, 0, kOctalSizeMax)));
    block[kTypeAt] = type;
    put(block, kTarget, entry.target);
    put(block, kMagic, {"ustar\00000", 8});
    put(block, kChecksum, fmt::format("{:06o}", checksum_of(block)));
    block[kChecksum.at + 6] = '\0';
    block[kChecksum.at + 7] = ' ';
    return block;
}

// "LENGTH KEY=VALUE\n", where LENGTH counts itself.
std::string pax_record(std::string_view key, std::string_view value) {
    const size_t rest = key.size() + value.size() + 3;
    size_t length = rest + 1;
    while (std::to_string(length).size() + rest != length) ++length;
    return fmt::format("{} {}={}\n", length, key, value);
}

char type_of(TarKind kind) {
    switch (kind) {
        case TarKind::Directory:
            return '5';
        case TarKind::Symlink:
            return '2';
        case TarKind::HardLink:
            return '1';
        case TarKind::File:
            break;
    }
    return '0';
}

uint64_t padding_of(uint64_t size) {
    return (kBlock - size % kBlock) % kBlock;
}

bool is_extension(char type) {
    return type == 'x' || type == 'L' || type == 'K';
}

bool is_zero(std::string_view block) {
    return std::ranges::all_of(block, [](char c) { return c == '\0'; });
}

Result<TarKind> kind_of(char type, const std::string& path) {
    switch (type) {
        case '0':
        case '\0':
        case '7':
            return path.ends_with('/') ? TarKind::Directory : TarKind::File;
        case '1':
            return TarKind::HardLink;
        case '2':
            return TarKind::Symlink;
        case '5':
            return TarKind::Directory;
        default:
            return make_error(
                ErrorKind::InvalidArgument,
                fmt::format("the entry `{}` is neither a file nor a directory nor a link (devices "
                            "and pipes are not taken)",
                            path));
    }
}

}  // namespace

std::string tar_header(const TarEntry& entry) {
    std::string records;
    if (entry.path.size() > kName.size) records += pax_record("path", entry.path);
    if (entry.target.size() > kTarget.size) records += pax_record("linkpath", entry.target);
    if (entry.size > kOctalSizeMax) records += pax_record("size", std::to_string(entry.size));
    std::string out;
    if (!records.empty()) {
        out = header_block('x', {.path = "pax", .size = records.size()});
        out += records + tar_padding(records.size());
    }
    return out + header_block(type_of(entry.kind), entry);
}

std::string tar_padding(uint64_t size) {
    return std::string(padding_of(size), '\0');
}

std::string tar_end() {
    return std::string(2 * kBlock, '\0');
}

void TarDecoder::feed(std::string_view bytes) {
    buffer_.erase(0, used_);
    used_ = 0;
    if (!ended_) buffer_ += bytes;
}

bool TarDecoder::finished() const {
    if (ended_) return true;
    return began_ && rest().empty() && content_left_ == 0 && padding_left_ == 0 &&
           extension_ == 0 && pax_.empty();
}

Result<std::optional<TarDecoder::Part>> TarDecoder::next() {
    while (!ended_) {
        if (content_left_ > 0) {
            const auto piece = rest().substr(0, std::min<uint64_t>(content_left_, SIZE_MAX));
            if (piece.empty()) return std::nullopt;
            used_ += piece.size();
            content_left_ -= piece.size();
            if (extension_ == 0) return Content{piece};
            extension_text_ += piece;
            continue;
        }
        if (padding_left_ > 0) {
            const size_t skipped = std::min<uint64_t>(padding_left_, rest().size());
            if (skipped == 0) return std::nullopt;
            used_ += skipped;
            padding_left_ -= skipped;
            continue;
        }
        if (extension_ != 0) TRY_OK(take_extension(std::exchange(extension_text_, {})));
        if (rest().size() < kBlock) return std::nullopt;
        const std::string_view block = rest().substr(0, kBlock);
        used_ += kBlock;
        auto part = TRY(header(block));
        if (part) return part;
    }
    return std::nullopt;
}

Result<std::optional<TarDecoder::Part>> TarDecoder::header(std::string_view block) {
    if (is_zero(block)) {
        ended_ = ++zero_blocks_ == 2;
        began_ = true;
        return std::nullopt;
    }
    if (zero_blocks_ > 0) return no_tar("something follows its end");
    if (TRY(number_of(block, kChecksum)) != checksum_of(block))
        return no_tar("a checksum is wrong");
    began_ = true;
    const char type = block[kTypeAt];
    const uint64_t size = TRY(number_of(block, kSize));
    if (is_extension(type) || type == 'g') {
        if (size > kExtensionMax) return no_tar("a header has more than 64 KiB");
        extension_ = type;
        content_left_ = size;
        padding_left_ = padding_of(size);
        return std::nullopt;
    }
    TarEntry entry = TRY(entry_of(block));
    content_left_ = entry.size;
    padding_left_ = padding_of(entry.size);
    return Part(std::move(entry));
}

Result<void> TarDecoder::take_extension(std::string_view text) {
    const char kind = std::exchange(extension_, 0);
    if (kind == 'x') return take_pax(text);
    if (kind == 'g') return {};  // what holds for all entries is of no use here
    pax_[kind == 'L' ? "path" : "linkpath"] = text.substr(0, text.find('\0'));
    return {};
}

Result<void> TarDecoder::take_pax(std::string_view text) {
    while (!text.empty()) {
        const size_t space = text.find(' ');
        const auto length = whole_number<size_t>(text.substr(0, std::min(space, text.size())));
        if (space == std::string_view::npos || !length || *length > text.size() ||
            *length < space + 3 || text[*length - 1] != '\n')
            return no_tar("a pax header is broken");
        const std::string_view record = text.substr(space + 1, *length - space - 2);
        text.remove_prefix(*length);
        const size_t equals = record.find('=');
        if (equals == std::string_view::npos) return no_tar("a pax header is broken");
        const std::string_view key = record.substr(0, equals);
        if (key.starts_with("GNU.sparse")) {
            return make_error(ErrorKind::InvalidArgument,
                              "sparse files are not taken: make the archive without --sparse");
        }
        if (key == "path" || key == "linkpath" || key == "size")
            pax_[std::string(key)] = record.substr(equals + 1);
    }
    return {};
}

Result<TarEntry> TarDecoder::entry_of(std::string_view block) {
    TarEntry entry;
    const auto taken = [this](std::string_view key) -> std::optional<std::string> {
        const auto found = pax_.find(key);
        return found == pax_.end() ? std::nullopt : std::optional(found->second);
    };
    std::string name(text_of(block, kName));
    const bool ustar = block.substr(kMagic.at, 6) == std::string_view("ustar\0", 6);
    const std::string_view prefix = ustar ? text_of(block, kPrefix) : std::string_view();
    if (!prefix.empty()) name = fmt::format("{}/{}", prefix, name);
    entry.path = taken("path").value_or(name);
    entry.kind = TRY(kind_of(block[kTypeAt], entry.path));
    while (entry.path.size() > 1 && entry.path.ends_with('/')) entry.path.pop_back();
    entry.target = taken("linkpath").value_or(std::string(text_of(block, kTarget)));
    uint64_t size = TRY(number_of(block, kSize));
    if (const auto text = taken("size")) {
        const auto number = whole_number<uint64_t>(*text);
        if (!number) return no_tar("a pax header is broken");
        size = *number;
    }
    if (size > INT64_MAX) return no_tar("a file is too large");
    entry.size = entry.kind == TarKind::File ? size : 0;
    entry.mode = static_cast<uint32_t>(TRY(number_of(block, kMode)) & 07777);
    entry.uid = static_cast<uint32_t>(TRY(number_of(block, kUid)));
    entry.gid = static_cast<uint32_t>(TRY(number_of(block, kGid)));
    entry.modified = static_cast<int64_t>(TRY(number_of(block, kModified)));
    pax_.clear();
    const size_t longest = std::max(entry.path.size(), entry.target.size());
    const bool zero = (entry.path + entry.target).find('\0') != std::string::npos;
    if (longest > limits::kPathMax || zero)
        return no_tar("a path is too long or holds a zero byte");
    return entry;
}

}  // namespace cloister
