#include "wire/multipart.h"

#include <gtest/gtest.h>

#include <vector>

namespace cloister {
namespace {

struct Part {
    std::string name, filename, content;
    bool ended = false;
};

Result<std::vector<Part>> parts_of(std::string_view body, size_t step = SIZE_MAX,
                                   std::string_view type = "multipart/form-data; boundary=XX") {
    MultipartDecoder decoder = TRY(MultipartDecoder::create(type));
    std::vector<Part> parts;
    for (size_t at = 0; at < body.size();) {
        const std::string_view piece = body.substr(at, step);
        at += piece.size();
        decoder.feed(piece);
        while (auto event = TRY(decoder.next())) {
            if (const auto* head = std::get_if<PartHead>(&*event))
                parts.push_back({head->name, head->filename.value_or("(none)"), "", false});
            if (const auto* content = std::get_if<PartContent>(&*event))
                parts.back().content += content->bytes;
            if (std::holds_alternative<PartEnd>(*event)) parts.back().ended = true;
        }
    }
    if (!decoder.ended()) return make_error(ErrorKind::Cancelled, "broke off");
    return parts;
}

std::string part(std::string_view disposition, std::string_view content) {
    return "--XX\r\nContent-Disposition: form-data" + std::string(disposition) +
           "\r\nContent-Type: text/plain\r\n\r\n" + std::string(content) + "\r\n";
}

TEST(Multipart, CutsABodyIntoParts) {
    const std::string nasty = "\r\n--X\r\n--\r\n-\r\r\n--XY";
    const std::string body = "preamble\r\n" + part("; name=\"file\"; filename=\"a/b.txt\"", nasty) +
                             part("; name=file; filename=empty", "") + part("; name=\"n\"", "v") +
                             "--XX--\r\nepilogue";
    for (const size_t step : {size_t{1}, size_t{2}, size_t{7}, body.size()}) {
        const auto parts = parts_of(body, step).value();
        ASSERT_EQ(parts.size(), 3U) << step;
        EXPECT_EQ(parts[0].filename, "a/b.txt");
        EXPECT_EQ(parts[0].content, nasty);
        EXPECT_EQ(parts[1].filename, "empty");
        EXPECT_EQ(parts[1].content, "");
        EXPECT_TRUE(parts[1].ended);
        EXPECT_EQ(parts[2].filename, "(none)");
        EXPECT_EQ(parts[2].content, "v");
    }
}

TEST(Multipart, ReadsNamesAsClientsWriteThem) {
    const auto name = [](const std::string& disposition) {
        return parts_of(part(disposition, "") + "--XX--").value()[0].filename;
    };
    EXPECT_EQ(name("; name=\"f\"; filename=\"a\\\"b\""), "a\"b");
    EXPECT_EQ(name("; name=\"f\"; filename=\"a%22b%41\""), "a\"b%41");
    EXPECT_EQ(name("; filename=plain; filename*=UTF-8''%E6%96%87.txt"), "文.txt");
    EXPECT_EQ(name("; FILENAME=\"x;y\""), "x;y");
}

TEST(Multipart, KnowsWhatIsBroken) {
    EXPECT_EQ(parts_of("", 1, "text/plain").error().kind, ErrorKind::InvalidArgument);
    EXPECT_FALSE(parts_of("", 1, "multipart/form-data"));
    EXPECT_FALSE(parts_of("", 1, "multipart/form-data; boundary=" + std::string(71, 'x')));
    EXPECT_EQ(parts_of(part("; name=a", "text")).error().kind, ErrorKind::Cancelled);
    EXPECT_EQ(parts_of("--XX\r\nX: y\r\n\r\n\r\n--XX--").error().kind, ErrorKind::InvalidArgument);
    EXPECT_EQ(parts_of("--XXjunk").error().kind, ErrorKind::InvalidArgument);
    EXPECT_EQ(parts_of(std::string(100'000, 'x')).error().kind, ErrorKind::InvalidArgument);
    EXPECT_EQ(parts_of("--XX\r\n" + std::string(20'000, 'x')).error().kind, ErrorKind::TooLarge);
}

TEST(Multipart, QuotesABoundary) {
    const std::string body = "--a b\r\nContent-Disposition: form-data; name=x\r\n\r\n1\r\n--a b--";
    EXPECT_EQ(
        parts_of(body, 3, "Multipart/Form-Data; charset=x; boundary=\"a b\"").value()[0].content,
        "1");
}

}  // namespace
}  // namespace cloister
