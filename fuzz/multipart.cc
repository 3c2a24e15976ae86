// A body in parts from a client: however it is cut on its way, its parts are the same, and they are
// pieces of what came.
#include "wire/multipart.h"

#include "fuzz.h"

using namespace cloister;

namespace {

struct Seen {
    std::string text;  // of all events
    bool broken = false;
    bool ended = false;
};

Seen read(std::string_view body, size_t step) {
    Seen seen;
    auto decoder = MultipartDecoder::create("multipart/form-data; boundary=b");
    EXPECT(decoder);
    size_t content = 0;
    for (size_t at = 0; at < body.size(); at += step) {
        decoder->feed(body.substr(at, step));
        for (;;) {
            const auto event = decoder->next();
            seen.broken = !event;
            if (!event || !*event) break;
            if (const auto* head = std::get_if<PartHead>(&**event))
                seen.text += "<" + head->name + "|" + head->filename.value_or("") + ">";
            if (const auto* piece = std::get_if<PartContent>(&**event)) {
                EXPECT(!piece->bytes.empty());
                content += piece->bytes.size();
                seen.text += piece->bytes;
            }
            if (std::holds_alternative<PartEnd>(**event)) seen.text += "<end>";
        }
        if (seen.broken) break;
    }
    EXPECT(content <= body.size());
    seen.ended = decoder->ended();
    return seen;
}

}  // namespace

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    const std::string text(fuzz::text_of(data, size));
    (void)MultipartDecoder::create(text);  // any content type
    const Seen whole = read(text, text.size() + 1), cut = read(text, 1);
    EXPECT(whole.broken == cut.broken);
    if (!whole.broken) EXPECT(whole.ended == cut.ended && whole.text == cut.text);
    return 0;
}
