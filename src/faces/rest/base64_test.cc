#include "faces/rest/base64.h"

#include <gtest/gtest.h>

namespace cloister::rest {
namespace {

TEST(Base64, DecodesTheVectorsOfTheStandard) {
    EXPECT_EQ(base64_decode(""), "");
    EXPECT_EQ(base64_decode("Zg=="), "f");
    EXPECT_EQ(base64_decode("Zm8="), "fo");
    EXPECT_EQ(base64_decode("Zm9v"), "foo");
    EXPECT_EQ(base64_decode("Zm9vYmFy"), "foobar");
    EXPECT_EQ(base64_decode("AP+/"), std::string("\0\xFF\xBF", 3));
}

TEST(Base64, RefusesWhatIsNoEncoding) {
    for (const char* bad : {"Z", "Zg", "Zg=", "Zg===", "====", "=",
                            "Z===", "Zh==", "Zm9=", "Zm9v\n", "Z-9v", "Zm=v", "***"}) {
        EXPECT_EQ(base64_decode(bad), std::nullopt) << bad;
    }
}

}  // namespace
}  // namespace cloister::rest
