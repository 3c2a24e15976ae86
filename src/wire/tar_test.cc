#include "wire/tar.h"

#include <gtest/gtest.h>

#include <vector>

namespace cloister {
namespace {

struct Read {
    std::vector<TarEntry> entries;
    std::vector<std::string> contents;
    bool finished = false;
};

Result<Read> read(std::string_view archive, size_t step = SIZE_MAX) {
    Read out;
    TarDecoder tar;
    for (size_t at = 0; at < archive.size(); at += step) {
        tar.feed(archive.substr(at, step));
        while (auto part = TRY(tar.next())) {
            if (const auto* entry = std::get_if<TarEntry>(&*part)) {
                out.entries.push_back(*entry);
                out.contents.emplace_back();
            } else {
                out.contents.back() += std::get<TarDecoder::Content>(*part).bytes;
            }
        }
        if (step > archive.size()) break;
    }
    out.finished = tar.finished();
    return out;
}

std::string file(const std::string& path, const std::string& text) {
    return tar_header({.path = path, .size = text.size()}) + text + tar_padding(text.size());
}

std::string link(TarKind kind, const std::string& path, const std::string& target) {
    return tar_header({.kind = kind, .path = path, .target = target});
}

// A file's header with one byte of it changed, and the checksum right again.
std::string with_type(char type) {
    std::string header = tar_header({.path = "x"});
    const int change = type - header[156];
    header[156] = type;
    int sum = std::stoi(header.substr(148, 6), nullptr, 8) + change;
    for (size_t i = 6; i-- > 0; sum /= 8) header[148 + i] = static_cast<char>('0' + sum % 8);
    return header;
}

TEST(Tar, ReadsWhatItWrites) {
    const std::string deep = std::string(150, 'd') + "/" + std::string(200, 'f');
    const std::string archive =
        tar_header({.kind = TarKind::Directory, .path = "dir/", .mode = 0750}) +
        file("dir/a", std::string(1000, 'a')) + file(deep, "") +
        link(TarKind::Symlink, "l", std::string(300, 't')) + link(TarKind::HardLink, "h", "dir/a") +
        tar_end();
    for (const size_t step : {size_t{1}, size_t{511}, size_t{513}, archive.size()}) {
        const Read got = read(archive, step).value();
        ASSERT_EQ(got.entries.size(), 5U);
        EXPECT_TRUE(got.finished);
        EXPECT_EQ(got.entries[0].kind, TarKind::Directory);
        EXPECT_EQ(got.entries[0].path, "dir");
        EXPECT_EQ(got.entries[0].mode, 0750U);
        EXPECT_EQ(got.contents[1], std::string(1000, 'a'));
        EXPECT_EQ(got.entries[2].path, deep);
        EXPECT_EQ(got.entries[3].target, std::string(300, 't'));
        EXPECT_EQ(got.entries[4].kind, TarKind::HardLink);
    }
}

TEST(Tar, KnowsWhetherItIsWhole) {
    const std::string archive = file("a", "text") + tar_end();
    EXPECT_TRUE(read(archive).value().finished);
    EXPECT_TRUE(read(archive.substr(0, 1024)).value().finished);  // many tars are cut so
    EXPECT_FALSE(read(archive.substr(0, 1023)).value().finished);
    EXPECT_FALSE(read(archive.substr(0, 514)).value().finished);
    EXPECT_FALSE(read("").value().finished);
}

TEST(Tar, RefusesWhatIsNoneOfItsKinds) {
    for (const char type : {'3', '4', '6', 'S', 'D', 'Z'}) {
        EXPECT_EQ(read(with_type(type)).error().kind, ErrorKind::InvalidArgument) << type;
    }
    EXPECT_TRUE(read(with_type('7')));
}

TEST(Tar, RefusesWhatIsBroken) {
    EXPECT_FALSE(read(std::string(512, 'x')));
    std::string changed = file("a", "");
    changed[0] = 'b';
    EXPECT_FALSE(read(changed));
    EXPECT_FALSE(read(std::string(512, '\0') + file("a", "")));
    // A pax header of a megabyte, and one that is none.
    EXPECT_FALSE(read(tar_header({.path = std::string(1 << 20, 'p')})));
    EXPECT_FALSE(read(tar_header({.path = std::string(5'000, 'p')})));
}

TEST(Tar, ReadsLargeNumbers) {
    const uint64_t size = 20'000'000'000'000;
    EXPECT_EQ(read(tar_header({.path = "big", .size = size})).value().entries[0].size, size);
}

}  // namespace
}  // namespace cloister
