#include "wire/templates.h"

#include <gtest/gtest.h>

namespace cloister {
namespace {

TEST(Templates, AreFoundByNameAndAlias) {
    EXPECT_EQ(find_built_in_template("base"), 0u);
    EXPECT_EQ(find_built_in_template("code-interpreter-v1"), 0u);
    EXPECT_EQ(find_built_in_template("polyglot"), 1u);
    EXPECT_FALSE(find_built_in_template("Base"));
    EXPECT_FALSE(find_built_in_template(""));
    EXPECT_EQ(built_in_template_names(), "`base`, `polyglot`");
}

TEST(Templates, EveryLanguageIsInOneOfThem) {
    for (const Language& language : kLanguages) {
        EXPECT_TRUE(find_template_of(language.name)) << language.name;
    }
    EXPECT_EQ(find_template_of("bash"), "base");
    EXPECT_EQ(find_template_of("r"), "polyglot");
    EXPECT_FALSE(find_template_of("cobol"));
    EXPECT_FALSE(has_language(kBuiltInTemplates[0], "java"));
    EXPECT_TRUE(has_language(kBuiltInTemplates[1], "java"));
}

// A name is also the prefix of a revision, an id that the image's hash completes.
TEST(Templates, NamesLeaveRoomForAHash) {
    for (const BuiltInTemplate& built_in : kBuiltInTemplates) EXPECT_LE(built_in.name.size(), 8u);
}

}  // namespace
}  // namespace cloister
