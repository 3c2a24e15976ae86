#include "base/json_text.h"

#include <gtest/gtest.h>

namespace cloister {
namespace {

TEST(JsonText, EveryByteIsEscapedAtEveryPlace) {
    for (size_t before = 0; before < 17; ++before) {
        const std::string plain(before, 'x');
        EXPECT_EQ(json_quote(plain + "\"" + plain), "\"" + plain + "\\\"" + plain + "\"");
        EXPECT_EQ(json_quote(plain + "\\"), "\"" + plain + "\\\\\"");
        EXPECT_EQ(json_quote(plain + "\n\r\t"), "\"" + plain + "\\n\\r\\t\"");
        EXPECT_EQ(json_quote(plain + std::string(1, '\0') + "\x1F\x7F "),
                  "\"" + plain + "\\u0000\\u001f\x7F \"");
        EXPECT_EQ(json_quote(plain + "grün €\xFF!"), "\"" + plain + "grün €\xEF\xBF\xBD!\"");
    }
}

TEST(JsonText, AppendsBehindWhatIsThere) {
    std::string out = "{\"text\":";
    append_json_quoted(out, std::string(100'000, 'a') + "\x1B[0m");
    EXPECT_EQ(out, "{\"text\":\"" + std::string(100'000, 'a') + "\\u001b[0m\"");
}

}  // namespace
}  // namespace cloister
