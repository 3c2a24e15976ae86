#include "programs/agent/operations.h"

#include <gtest/gtest.h>

#include "base/limits.h"

namespace cloister::agent {
namespace {

Result<Operation> decode(const std::string& json) {
    auto frame = std::make_shared<Held>();
    frame->bytes = "\x01" + json;
    return decode_operation(frame, "/home/user");
}

std::string field_at_fault(const std::string& json) {
    const auto decoded = decode(json);
    return decoded ? "none" : decoded.error().field;
}

constexpr const char* kRun =
    R"({"op":"run","run":"aaaaaaaaaaaaaaaaaaaa","context":"bbbbbbbbbbbbbbbbbbbb","code":"1\n2")";

TEST(Operations, ARunKeepsItsCodeAsItStands) {
    const auto decoded = decode(
        std::string(kRun) +
        R"(,"argv":["a"],"env":{"K":"V"},"cwd":"sub","stdin":"stream","timeout_ms":5,"output_max":9,"artifacts":true})");
    ASSERT_TRUE(decoded);
    const auto& run = std::get<RunCode>(*decoded);
    EXPECT_EQ(run.code, R"("1\n2")");
    EXPECT_EQ(run.argv, std::vector<std::string>{"a"});
    EXPECT_EQ(run.env.at("K"), "V");
    EXPECT_EQ(run.cwd, "/home/user/sub");
    EXPECT_EQ(run.stdin_mode, StdinMode::Stream);
    EXPECT_EQ(run.timeout_ms, 5);
    EXPECT_EQ(run.output_max, 9U);
    EXPECT_TRUE(run.artifacts);
    EXPECT_FALSE(run.filename);
}

TEST(Operations, HaveDefaults) {
    const auto decoded = decode(std::string(kRun) + "}");
    ASSERT_TRUE(decoded);
    const auto& run = std::get<RunCode>(*decoded);
    EXPECT_EQ(run.timeout_ms, limits::kRunTimeoutDefaultMs);
    EXPECT_EQ(run.output_max, limits::kOutputMaxDefault);
    EXPECT_EQ(run.stdin_mode, StdinMode::None);
    EXPECT_FALSE(run.argv);
}

TEST(Operations, PathsBeginAtHome) {
    const auto read = decode(R"({"op":"file.read","path":"a/b","offset":3})");
    ASSERT_TRUE(read);
    EXPECT_EQ(std::get<FileOperation>(*read).request.path, "/home/user/a/b");
    EXPECT_EQ(std::get<FileOperation>(*read).request.offset, 3U);
    const auto write = decode(R"({"op":"file.write","path":"/tmp/x"})");
    ASSERT_TRUE(write);
    EXPECT_EQ(std::get<FileOperation>(*write).request.path, "/tmp/x");
    const auto move = decode(R"({"op":"file.move","path":"a","to":"b","overwrite":true})");
    ASSERT_TRUE(move);
    EXPECT_EQ(std::get<FileOperation>(*move).request.to, "/home/user/b");
}

TEST(Operations, FileWorkIsDecodedTwiceAlike) {
    const auto first = decode(
        R"({"op":"file.write","path":"x","user":"root","metadata":{"a":"1"},"durable":true})");
    ASSERT_TRUE(first);
    const auto& file = std::get<FileOperation>(*first);
    const auto again = decode_file_request(file.text, "/home/user");
    ASSERT_TRUE(again);
    EXPECT_EQ(again->path, file.request.path);
    EXPECT_EQ(again->identity, Identity::Root);
    EXPECT_EQ(again->metadata, (StringMap{{"a", "1"}}));
    EXPECT_TRUE(again->durable);
}

TEST(Operations, RunsAreNamedByTheirIds) {
    constexpr const char* kId = R"("run":"aaaaaaaaaaaaaaaaaaaa"})";
    EXPECT_EQ(std::get<AttachRun>(*decode(std::string(R"({"op":"run.attach",)") + kId)).run,
              "aaaaaaaaaaaaaaaaaaaa");
    EXPECT_EQ(std::get<ForgetRun>(*decode(std::string(R"({"op":"run.forget",)") + kId)).run,
              "aaaaaaaaaaaaaaaaaaaa");
    EXPECT_TRUE(std::holds_alternative<GetState>(*decode(R"({"op":"state"})")));
    const auto run = decode(std::string(kRun) + R"(,"forget":"cccccccccccccccccccc"})");
    EXPECT_EQ(std::get<RunCode>(*run).forget, "cccccccccccccccccccc");
    EXPECT_EQ(field_at_fault(std::string(kRun) + R"(,"forget":"../x"})"), "forget");
    EXPECT_EQ(field_at_fault(R"({"op":"run.attach","run":"x"})"), "run");
}

TEST(Operations, NameTheFieldAtFault) {
    EXPECT_EQ(field_at_fault(R"({"op":"dance"})"), "op");
    EXPECT_EQ(field_at_fault(R"({"op":"hello","extra":1})"), "extra");
    EXPECT_EQ(field_at_fault(R"({"op":"hello","code":"x"})"), "code");
    EXPECT_EQ(field_at_fault(R"({"op":"context.delete","context":"../../x"})"), "context");
    EXPECT_EQ(field_at_fault(R"({"op":"file.read","path":"a\u0000b"})"), "path");
    EXPECT_EQ(field_at_fault(R"({"op":"file.write","path":"a","mode":4095})"), "mode");
    EXPECT_EQ(field_at_fault(R"({"op":"file.stat","path":"a","user":"nobody"})"), "user");
    EXPECT_EQ(field_at_fault(R"({"op":"file.stat","path":"a","recursive":true})"), "recursive");
    EXPECT_EQ(field_at_fault(R"({"op":"file.move","path":"a","to":""})"), "to");
    EXPECT_EQ(field_at_fault(R"({"op":"file.write","path":"a","metadata":{"":"x"}})"), "metadata");
    EXPECT_EQ(field_at_fault(R"({"op":"file.dance","path":"a"})"), "op");
    EXPECT_EQ(field_at_fault(std::string(kRun) + R"(,"env":{"A=B":"1"}})"), "env");
    EXPECT_EQ(field_at_fault(std::string(kRun) + R"(,"stdin":"maybe"})"), "stdin");
    EXPECT_EQ(field_at_fault(std::string(kRun) + R"(,"timeout_ms":0})"), "timeout_ms");
    EXPECT_EQ(
        field_at_fault(R"({"op":"run.interrupt","run":"aaaaaaaaaaaaaaaaaaaa","reason":"boredom"})"),
        "reason");
    EXPECT_FALSE(decode("[1]"));
    EXPECT_FALSE(decode(R"({"op":"run","run":"aaaaaaaaaaaaaaaaaaaa",)"
                        R"("context":"bbbbbbbbbbbbbbbbbbbb","code":7})"));
}

TEST(Operations, AProcess) {
    const std::string start = R"({"op":"process.start","process":"aaaaaaaaaaaaaaaaaaaa")";
    const auto decoded =
        decode(start + R"(,"argv":["ls"],"cwd":"sub","stdin_path":"in","timeout_ms":7,"tag":"t"})");
    ASSERT_TRUE(decoded);
    const auto& process = std::get<StartProcess>(*decoded);
    EXPECT_EQ(process.cwd, "/home/user/sub");
    EXPECT_EQ(process.stdin_path, "/home/user/sub/in");
    EXPECT_EQ(process.timeout_ms, 7);
    EXPECT_FALSE(process.terminal);
    const auto root = decode(start + R"(,"argv":["sh"],"user":"root","pty":true,"cols":132})");
    ASSERT_TRUE(root);
    EXPECT_EQ(std::get<StartProcess>(*root).cwd, "/root");
    EXPECT_EQ(std::get<StartProcess>(*root).terminal->cols, 132);
    EXPECT_EQ(std::get<StartProcess>(*root).terminal->rows, 24);
    EXPECT_EQ(field_at_fault(start + "}"), "argv");
    EXPECT_EQ(field_at_fault(start + R"(,"argv":[""]})"), "argv");
    EXPECT_EQ(field_at_fault(start + R"(,"argv":["a\u0000b"]})"), "argv");
    EXPECT_EQ(field_at_fault(start + R"(,"argv":["a"],"user":"daemon"})"), "user");
    EXPECT_EQ(field_at_fault(start + R"(,"argv":["a"],"pty":true,"rows":1001})"), "rows");
}

TEST(Operations, SignalsAndPorts) {
    const std::string signal =
        R"({"op":"process.signal","process":"aaaaaaaaaaaaaaaaaaaa","signal":)";
    const auto term = decode(signal + R"("TERM"})");
    ASSERT_TRUE(term);
    EXPECT_EQ(std::get<SignalProcess>(*term).number, 15);
    EXPECT_EQ(field_at_fault(signal + R"("15"})"), "signal");
    const auto port = decode(R"({"op":"port.connect","port":8000})");
    ASSERT_TRUE(port);
    EXPECT_EQ(std::get<ConnectPort>(*port).asks, ConnectPort::Asks::Anyone);
    EXPECT_EQ(field_at_fault(R"({"op":"port.connect","port":0})"), "port");
    EXPECT_EQ(field_at_fault(R"({"op":"port.connect"})"), "port");
    EXPECT_EQ(field_at_fault(R"({"op":"port.publish","port":65536})"), "port");
}

}  // namespace
}  // namespace cloister::agent
