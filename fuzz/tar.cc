// An archive that somebody made: however it is cut on its way its entries are the same, none has
// more content than it says, and what we write of them is read as the same again.
#include "wire/tar.h"

#include "fuzz.h"

using namespace cloister;

namespace {

struct Seen {
    std::string text;
    bool broken = false;
    bool finished = false;
};

void check(const TarEntry& entry) {
    EXPECT(entry.path.size() <= limits::kPathMax && entry.target.size() <= limits::kPathMax);
    EXPECT(entry.path.find('\0') == std::string::npos);
    EXPECT(entry.kind == TarKind::File || entry.size == 0);
    TarDecoder again;
    again.feed(tar_header(entry));
    const auto part = again.next();
    // A name that ends with a slash is a directory's, whatever else was said.
    if (entry.path.ends_with('/') || entry.path.empty()) return;
    EXPECT(part && *part);
    const auto* read = std::get_if<TarEntry>(&**part);
    EXPECT(read != nullptr && read->path == entry.path && read->size == entry.size &&
           read->target == entry.target && read->mode == entry.mode);
}

Seen read(std::string_view archive, size_t step) {
    Seen seen;
    TarDecoder tar;
    uint64_t left = 0;
    for (size_t at = 0; at < archive.size() && !seen.broken; at += step) {
        tar.feed(archive.substr(at, step));
        for (;;) {
            const auto part = tar.next();
            seen.broken = !part;
            if (!part || !*part) break;
            if (const auto* entry = std::get_if<TarEntry>(&**part)) {
                EXPECT(left == 0);
                check(*entry);
                left = entry->size;
                seen.text += "<" + entry->path + ">";
                continue;
            }
            const std::string_view bytes = std::get<TarDecoder::Content>(**part).bytes;
            EXPECT(!bytes.empty() && bytes.size() <= left);
            left -= bytes.size();
            seen.text += bytes;
        }
    }
    seen.finished = tar.finished();
    return seen;
}

}  // namespace

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    const std::string text(fuzz::text_of(data, size));
    const Seen whole = read(text, text.size() + 1), cut = read(text, 7);
    EXPECT(whole.broken == cut.broken);
    if (!whole.broken) EXPECT(whole.finished == cut.finished && whole.text == cut.text);
    return 0;
}
