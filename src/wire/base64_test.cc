#include "wire/base64.h"

#include <gtest/gtest.h>

namespace cloister {
namespace {

TEST(Base64, DecodesTheVectorsOfTheStandard) {
    EXPECT_EQ(base64_decode(""), "");
    EXPECT_EQ(base64_decode("Zg=="), "f");
    EXPECT_EQ(base64_decode("Zm8="), "fo");
    EXPECT_EQ(base64_decode("Zm9v"), "foo");
    EXPECT_EQ(base64_decode("Zm9vYmFy"), "foobar");
    EXPECT_EQ(base64_decode("AP+/"), std::string("\0\xFF\xBF", 3));
}

TEST(Base64, EncodesWhatItDecodes) {
    EXPECT_EQ(base64_encode("f"), "Zg==");
    EXPECT_EQ(base64_encode("fo"), "Zm8=");
    EXPECT_EQ(base64_encode("foobar"), "Zm9vYmFy");
    std::string all;
    for (int byte = 255; byte >= 0; --byte) {
        EXPECT_EQ(base64_decode(base64_encode(all)), all);
        all += static_cast<char>(byte);
    }
}

TEST(Base64, RefusesWhatIsNoEncoding) {
    for (const char* bad : {"Z", "Zg", "Zg=", "Zg===", "====", "=",
                            "Z===", "Zh==", "Zm9=", "Zm9v\n", "Z-9v", "Zm=v", "***"}) {
        EXPECT_EQ(base64_decode(bad), std::nullopt) << bad;
    }
}

}  // namespace
}  // namespace cloister
