#include "programs/cli/display.h"

#include <gtest/gtest.h>

namespace cloister::cli {
namespace {

Shown form_of(std::string_view data) {
    return choose_form(parse_object(data).value());
}

TEST(Display, PicturesBecomeFiles) {
    const Shown png =
        form_of(R"({"image/png":"iVBORw0K\nGgo=","text/plain":"<Figure size 640x480>"})");
    EXPECT_EQ(png.extension, ".png");
    EXPECT_EQ(png.bytes, "\x89PNG\r\n\x1a\n");
    EXPECT_EQ(png.text, "");
    EXPECT_EQ(form_of(R"({"image/svg+xml":"<svg/>"})").bytes, "<svg/>");
}

TEST(Display, ATableIsTextAndAPageIsAFile) {
    EXPECT_EQ(form_of(R"({"text/html":"<table>","text/plain":"   a\n0  1"})").text, "   a\n0  1");
    const Shown page =
        form_of(R"({"text/html":"<b>","text/plain":"<IPython.core.display.HTML object>"})");
    EXPECT_EQ(page.extension, ".html");
    EXPECT_EQ(page.bytes, "<b>");
}

TEST(Display, OtherFormsAreShownAsText) {
    EXPECT_EQ(
        form_of(R"({"text/markdown":"# x","text/plain":"<IPython.core.display.Markdown object>"})")
            .text,
        "# x");
    EXPECT_EQ(
        form_of(R"({"application/json":{"a":1},"text/plain":"<IPython.core.display.JSON object>"})")
            .text,
        "{\"a\":1}");
    EXPECT_EQ(form_of(R"({"text/plain":"42"})").text, "42");
    EXPECT_EQ(form_of(R"({"x/unknown":"?"})").text, "");
}

TEST(Display, BrokenPicturesAreNotSaved) {
    const Shown shown = form_of(R"({"image/png":"%%%","text/plain":"<Figure>"})");
    EXPECT_EQ(shown.extension, "");
    EXPECT_EQ(shown.text, "<Figure>");
}

TEST(Display, DecodesBase64) {
    EXPECT_EQ(base64_decode("aGk="), "hi");
    EXPECT_EQ(base64_decode("aGkh"), "hi!");
    EXPECT_EQ(base64_decode("/+8="), "\xff\xef");
    EXPECT_EQ(base64_decode(""), "");
    EXPECT_EQ(base64_decode("a b"), std::nullopt);
}

}  // namespace
}  // namespace cloister::cli
