#include "programs/shell/request.h"

#include <fcntl.h>
#include <gtest/gtest.h>

namespace cloister::shell {
namespace {

Message message_of(std::string_view content) {
    return {.type = "execute_request", .content = parse_object(content).value(), .fds = {}};
}

std::string complaint_about(std::string_view content) {
    const auto request = request_of(message_of(content));
    return request ? "" : request.error().message;
}

TEST(Request, HoldsWhatTheAgentSends) {
    const Request request =
        request_of(message_of(R"({"filename":"a.sh","argv":["a.sh","b c"],"cwd":"/tmp",
            "env":{"A_1":"x\ny"},"stdin":false,"code":"echo"})"))
            .value();
    EXPECT_EQ(request.code, "echo");
    EXPECT_EQ(request.filename, "a.sh");
    EXPECT_EQ(request.argv, (std::vector<std::string>{"a.sh", "b c"}));
    EXPECT_EQ(request.env.at("A_1"), "x\ny");
    EXPECT_EQ(request.cwd, "/tmp");
    EXPECT_FALSE(request.stdin_fd.open());
}

TEST(Request, TakesTheDescriptorThatComesWithIt) {
    Message message = message_of(R"({"code":"cat","stdin":true,"env":{}})");
    message.fds.push_back(os::open_file("/dev/null", O_RDONLY).value());
    const int number = message.fds[0].get();
    EXPECT_EQ(request_of(std::move(message)).value().stdin_fd.get(), number);
}

TEST(Request, LosesAByteOrderMark) {
    EXPECT_EQ(request_of(message_of("{\"code\":\"\xEF\xBB\xBF"
                                    "echo\"}"))
                  .value()
                  .code,
              "echo");
}

TEST(Request, RefusesWhatAShellCannotHold) {
    EXPECT_NE(complaint_about(R"({"code":"a\u0000b"})").find("the code holds a zero byte"),
              std::string::npos);
    EXPECT_NE(complaint_about(R"({"code":"a","argv":["x\u0000"]})").find("`argv`"),
              std::string::npos);
    EXPECT_NE(complaint_about(R"({"code":"a","env":{"A":"\u0000"}})").find("`env`"),
              std::string::npos);
    for (const char* name : {"a-b", "1a", "", "a b", "a[$(id)]", "é"}) {
        const std::string content =
            json::serialize(json::object{{"code", "a"}, {"env", json::object{{name, "value"}}}});
        EXPECT_NE(complaint_about(content).find("is no name for a variable"), std::string::npos)
            << name;
    }
}

TEST(Request, NamesTheFieldThatIsWrong) {
    EXPECT_NE(complaint_about("{}").find("code"), std::string::npos);
    EXPECT_NE(complaint_about(R"({"code":"a","argv":"a"})").find("argv"), std::string::npos);
}

}  // namespace
}  // namespace cloister::shell
