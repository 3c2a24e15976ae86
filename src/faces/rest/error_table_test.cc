#include "faces/rest/error_table.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>

#include "wire/json.h"

namespace cloister::rest {
namespace {

std::string contract_text() {
    const auto path = std::filesystem::path(__FILE__).parent_path() / "../../../contract/errors.md";
    std::ifstream file(path);
    std::stringstream text;
    text << file.rdbuf();
    return text.str();
}

// Rows "| `kind` | HTTP | …" of the first table: kind → HTTP status.
std::map<std::string, int> table_of(const std::string& markdown) {
    std::map<std::string, int> out;
    std::istringstream lines(markdown);
    for (std::string line; std::getline(lines, line) && !line.starts_with("## ");) {
        if (!line.starts_with("| `")) continue;
        const size_t end = line.find('`', 3);
        out[line.substr(3, end - 3)] = std::stoi(line.substr(line.find('|', end) + 1));
    }
    return out;
}

TEST(ErrorTable, IsTheOneOfTheContract) {
    const auto promised = table_of(contract_text());
    ASSERT_EQ(promised.size(), static_cast<size_t>(ErrorKind::Internal) + 1);
    for (int number = 0; number <= static_cast<int>(ErrorKind::Internal); ++number) {
        const auto kind = static_cast<ErrorKind>(number);
        const std::string word(to_string(kind));
        ASSERT_TRUE(promised.contains(word)) << word;
        EXPECT_EQ(status_of(make_error(kind, "m")), promised.at(word)) << word;
    }
    EXPECT_NE(contract_text().find("HTTP 422"), std::string::npos);
    EXPECT_EQ(status_of(invalid_field("f", "m")), 422);
}

TEST(ErrorTable, TheBodyNamesCodeMessageFieldAndRequest) {
    const auto body = parse_object(error_body(invalid_field("code", "say \"please\""), "r1"));
    ASSERT_TRUE(body);
    const json::object& error = body->at("error").as_object();
    EXPECT_EQ(error.at("code").as_string(), "invalid_argument");
    EXPECT_EQ(error.at("message").as_string(), "say \"please\"");
    EXPECT_EQ(error.at("field").as_string(), "code");
    EXPECT_EQ(error.at("request_id").as_string(), "r1");
    EXPECT_FALSE(parse_object(error_body(make_error(ErrorKind::NotFound, "m"), "r"))
                     ->at("error")
                     .as_object()
                     .contains("field"));
}

}  // namespace
}  // namespace cloister::rest
