#include "faces/rest/decode.h"

#include <gtest/gtest.h>

namespace cloister::rest {
namespace {

std::string field_at_fault(const char* body) {
    const auto decoded = decode_one_call_run(body);
    return decoded ? "none" : decoded.error().field;
}

TEST(Decode, DefaultsAreThoseOfTheContract) {
    const auto run = decode_run(R"({"code": "1"})");
    ASSERT_TRUE(run);
    EXPECT_EQ(run->spec.timeout_ms, 300'000);
    EXPECT_EQ(run->spec.output_max, 268'435'456U);
    EXPECT_EQ(run->wait, Wait::Yes);
    EXPECT_EQ(run->spec.stdin_mode, engine::StdinMode::None);
    const auto sandbox = decode_sandbox("");
    EXPECT_EQ(sandbox->cpu, 2);
    EXPECT_EQ(sandbox->memory_mb, 2048U);
    EXPECT_EQ(sandbox->disk_mb, 10'240U);
    EXPECT_EQ(sandbox->lifespan.idle_seconds, 1200);
    EXPECT_EQ(sandbox->lifespan.on_idle, engine::AtEnd::Pause);
    EXPECT_FALSE(sandbox->lifespan.deadline_ms);
}

TEST(Decode, TakesEveryField) {
    const auto run = decode_one_call_run(R"({"code": "x", "language": "python", "filename": "a.py",
        "argv": ["a", ""], "env": {"A": "1"}, "cwd": "/tmp", "stdin": "in",
        "files": [{"path": "a", "content": "ü"}, {"path": "b", "content_base64": "AP8="}],
        "timeout_ms": 5, "output_max_bytes": 7, "cpu_time_ms": 10, "memory_max_bytes": 33554432, "pids": 4, "wait": false, "on_disconnect": "interrupt",
        "sandbox": {"tier": "namespace", "cpu": 1, "memory_mb": 128, "disk_mb": 64, "env": {"B": "2"}, "metadata": {"m": "1"},
                    "idle_timeout_seconds": 3}})");
    ASSERT_TRUE(run) << run.error().message;
    EXPECT_EQ(run->spec.argv, (std::vector<std::string>{"a", ""}));
    EXPECT_EQ(run->spec.files.at(1).bytes, std::string("\0\xFF", 2));
    EXPECT_EQ(run->spec.stdin_text, "in");
    EXPECT_EQ(run->spec.cpu_time_ms, 10);
    EXPECT_EQ(run->spec.narrowed.memory_max, 32U << 20);
    EXPECT_EQ(run->spec.narrowed.pids_max, 4U);
    EXPECT_EQ(run->wait, Wait::No);
    EXPECT_EQ(run->on_disconnect, OnDisconnect::Interrupt);
    EXPECT_EQ(run->sandbox.metadata.at("m"), "1");
    EXPECT_EQ(run->sandbox.lifespan.idle_seconds, 3);
}

TEST(Decode, NamesTheFieldAtFault) {
    EXPECT_EQ(field_at_fault(R"({})"), "code");
    EXPECT_EQ(field_at_fault(R"({"code": "1", "codee": "1"})"), "codee");
    EXPECT_EQ(field_at_fault(R"({"code": "1", "stdin": "", "stdin_open": true})"), "stdin");
    EXPECT_EQ(field_at_fault(R"({"code": "1", "files": [{"path": "a"}]})"), "files[0]");
    EXPECT_EQ(
        field_at_fault(
            R"({"code": "1", "files": [{"path": "a", "content": "", "content_base64": ""}]})"),
        "files[0]");
    EXPECT_EQ(field_at_fault(R"({"code": "1", "files": [{"path": "a", "content_base64": "?"}]})"),
              "files[0].content_base64");
    EXPECT_EQ(field_at_fault(R"({"code": "1", "on_disconnect": "panic"})"), "on_disconnect");
    EXPECT_EQ(field_at_fault(R"({"code": "1", "sandbox": {"gpu": 1}})"), "sandbox.gpu");
    EXPECT_EQ(field_at_fault(R"({"code": "1", "sandbox": {"disk_mb": 63}})"), "sandbox.disk_mb");
    EXPECT_EQ(decode_run(R"({"code": "1", "sandbox": {}})").error().field, "sandbox");
    EXPECT_EQ(decode_key_name(R"({"nam": "x"})").error().field, "nam");
}

TEST(Decode, AnAbsentTierIsNeverReplacedByAWeakerOne) {
    for (const char* tier : {"gvisor", "microvm", "vm"}) {
        const std::string body = std::string(R"({"code":"1","sandbox":{"tier":")") + tier + "\"}}";
        EXPECT_EQ(field_at_fault(body.c_str()), "sandbox.tier") << tier;
    }
    EXPECT_EQ(field_at_fault(R"({"code":"1","pids":513})"), "pids");
    EXPECT_EQ(field_at_fault(R"({"code":"1","memory_max_bytes":1000})"), "memory_max_bytes");
    EXPECT_EQ(field_at_fault(R"({"code":"1","cpu_time_ms":1})"), "cpu_time_ms");
}

}  // namespace
}  // namespace cloister::rest
