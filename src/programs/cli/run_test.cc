// `cloister run` against a service that is played by our own http::Server.
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <map>

#include "http/test_server.h"
#include "os/fd.h"
#include "programs/cli/command.h"
#include "wire/json.h"

namespace cloister::cli {
namespace {

constexpr std::string_view kSandbox = "s0000000000000000000", kRun = "r0000000000000000000";

// What the service was asked, and what it plays. Written by the service's thread, read when the
// verb has returned.
struct Played {
    std::string events;  // behind `started`
    std::string ended =
        R"({"end_reason":"ok","exit_code":0,"metrics":{"wall_ms":1240,"cpu_ms":310,)"
        R"("memory_peak_bytes":142000000},"artifacts":[]})";
    bool breaks_off = false;  // the stream ends without `ended`
    bool waits_for_stdin = false;
    std::vector<std::string> asked;  // "METHOD path?query"
    std::map<std::string, std::string> uploads;
    json::object run;
    std::string stdin_bytes, authorization;
    bool stdin_ended = false;
};

Task<void> answer_json(http::Response& response, int status, std::string body) {
    http::Headers headers{{"Content-Type", "application/json"}};
    (void)co_await response.send(status, std::move(headers), std::move(body));
}

Task<void> play_run(Played& played, http::Request& request, http::Response& response) {
    auto body = co_await request.read_body(1 << 20);
    played.run = parse_object(*body).value();
    http::Headers headers{{"Content-Type", "text/event-stream"}};
    (void)co_await response.start(200, std::move(headers));
    std::string started =
        "id: 1\nevent: started\ndata: {\"run\":{\"id\":\"" + std::string(kRun) + "\"}}\n\n";
    (void)co_await response.write(std::move(started));
    while (played.waits_for_stdin && !played.stdin_ended)
        co_await sleep_for(std::chrono::milliseconds(2));
    (void)co_await response.write(played.events);
    if (played.breaks_off) {
        response.abort();
        co_return;
    }
    std::string ended = "id: 9\nevent: ended\ndata: " + played.ended + "\n\n";
    (void)co_await response.write(std::move(ended));
    (void)co_await response.finish();
}

Task<void> play(Played& played, http::Request& request, http::Response& response) {
    const std::string path(request.path());
    const std::string what = std::string(request.method()) + " " + path;
    played.asked.push_back(what);
    played.authorization = request.header("Authorization");
    if (what == "POST /v1/sandboxes") {
        co_return co_await answer_json(response, 201, "{\"id\":\"" + std::string(kSandbox) + "\"}");
    }
    if (what.starts_with("PUT ")) {
        auto body = co_await request.read_body(1 << 20);
        played.uploads[http::query_value(request.query(), "path").value_or("?")] = *body;
        co_return co_await answer_json(response, 200, "{}");
    }
    if (what.ends_with("/runs")) co_return co_await play_run(played, request, response);
    if (what.ends_with("/stdin")) {
        auto body = co_await request.read_body(1 << 20);
        played.stdin_bytes += *body;
        played.stdin_ended = http::query_value(request.query(), "eof") == "true";
    }
    if (what == "GET /v1/runs/" + std::string(kRun))
        co_return co_await answer_json(response, 200, played.ended);
    if (what.starts_with("GET ")) {
        (void)co_await response.send(200, {}, "bytes of the file");
        co_return;
    }
    (void)co_await response.send(204, {}, "");
}

struct Outcome {
    int code = 0;
    std::string out, err;
};

class RunTest : public ::testing::Test {
  protected:
    void SetUp() override {
        std::filesystem::remove_all(kDirectory);
        std::filesystem::create_directories(kDirectory);
        before_ = std::filesystem::current_path();
        std::filesystem::current_path(kDirectory);
    }
    void TearDown() override {
        std::filesystem::current_path(before_);
        std::filesystem::remove_all(kDirectory);
    }
    Outcome run(Words words, const std::string& input = "/dev/null") {
        const int saved = ::dup(STDIN_FILENO);
        const os::Fd file = os::open_file(input, 0).value();
        ::dup2(file.get(), STDIN_FILENO);
        Words all{"--url", url_, "--key", "the-key"};
        all.insert(all.end(), words.begin(), words.end());
        ::testing::internal::CaptureStdout();
        ::testing::internal::CaptureStderr();
        Outcome outcome{.code = run_command(all)};
        outcome.out = ::testing::internal::GetCapturedStdout();
        outcome.err = ::testing::internal::GetCapturedStderr();
        ::dup2(saved, STDIN_FILENO);
        ::close(saved);
        return outcome;
    }
    void write(const std::string& path, std::string_view bytes) {
        ASSERT_TRUE(os::write_file_atomically(path, bytes, 0644));
    }
    bool was_asked(std::string_view what) const {
        return std::ranges::find(played_.asked, what) != played_.asked.end();
    }

    static constexpr const char* kDirectory = "/tmp/cloister-run-test";
    std::filesystem::path before_;
    Played played_;
    http::TestServer server_{
        [this](http::Request& q, http::Response& a) { return play(played_, q, a); }};
    std::string url_ = server_.url();
};

TEST_F(RunTest, StreamsTheProgramsOutputAndDeletesTheSandbox) {
    played_.events =
        "event: stdout\ndata: {\"text\":\"out\\n\"}\n\nevent: stderr\ndata: "
        "{\"text\":\"err\\n\"}\n\n";
    const Outcome done = run({"-c", "print()", "one", "--two"});
    EXPECT_EQ(done.code, 0);
    EXPECT_EQ(done.out, "out\n");
    EXPECT_EQ(done.err, "err\nended ok in 1.24 s · cpu 0.31 s · peak memory 142 MB\n");
    EXPECT_EQ(played_.run["argv"], json::value({"-c", "one", "--two"}));
    EXPECT_FALSE(played_.run.contains("stdin_open"));
    EXPECT_EQ(played_.authorization, "Bearer the-key");
    EXPECT_EQ(played_.asked.back(), "DELETE /v1/sandboxes/" + std::string(kSandbox));
}

TEST_F(RunTest, OutputThatIsNotUtf8ComesExactly) {
    played_.events = "event: stdout\ndata: {\"text\":\"a\xEF\xBF\xBD\",\"base64\":\"Yf8A\"}\n\n";
    const Outcome done = run({"-c", "print()"});
    EXPECT_EQ(done.out, std::string("a\xFF\0", 3));
}

TEST_F(RunTest, UploadsTheScriptAndFiles) {
    write("my script.py", "print('hi')");
    write("data.csv", "a,b");
    const Outcome done = run(
        {"--file", "data.csv:in/d.csv", "--env", "A=1", "--timeout", "2s", "my script.py", "x"});
    EXPECT_EQ(done.code, 0) << done.err;
    EXPECT_EQ(played_.uploads, (std::map<std::string, std::string>{{"my script.py", "print('hi')"},
                                                                   {"in/d.csv", "a,b"}}));
    EXPECT_EQ(played_.run["filename"], "/home/user/my script.py");
    EXPECT_EQ(played_.run["argv"], json::value({"my script.py", "x"}));
    EXPECT_EQ(played_.run["timeout_ms"], 2000);
    EXPECT_EQ(played_.run["env"], json::value({{"A", "1"}}));
}

TEST_F(RunTest, SendsStandardInputToItsEnd) {
    const std::string text(600'000, 'x');
    write("input", text);
    played_.waits_for_stdin = true;
    EXPECT_EQ(run({"-c", "input()"}, "input").code, 0);
    EXPECT_EQ(played_.run["stdin_open"], true);
    EXPECT_EQ(played_.stdin_bytes.size(), text.size());
}

TEST_F(RunTest, SavesPicturesAndShowsResults) {
    played_.events =
        "event: display\ndata: "
        "{\"data\":{\"image/png\":\"aGk=\",\"text/plain\":\"<Figure>\"},\"display_id\":\"d\"}\n\n"
        "event: display_update\ndata: {\"data\":{\"image/png\":\"aG8=\"},\"display_id\":\"d\"}\n\n"
        "event: result\ndata: {\"data\":{\"text/plain\":\"42\"}}\n\n";
    const Outcome done = run({"-c", "42"});
    EXPECT_EQ(done.out, "42\n");
    EXPECT_NE(done.err.find("saved cloister-out/code/figure-1.png"), std::string::npos) << done.err;
    EXPECT_EQ(os::read_file("cloister-out/code/figure-1.png", 10).value(), "ho");
    EXPECT_FALSE(std::filesystem::exists("cloister-out/code/figure-2.png"));
}

TEST_F(RunTest, AnExceptionIsShownAndItsCodePassedOn) {
    played_.events =
        "event: error\ndata: {\"name\":\"E\",\"value\":\"v\",\"traceback\":[\"Traceback\",\"E: "
        "v\"]}\n\n";
    played_.ended = R"({"end_reason":"error","exit_code":7,"message":"E: v"})";
    const Outcome done = run({"-c", "raise"});
    EXPECT_EQ(done.code, 7);
    EXPECT_TRUE(done.err.starts_with("Traceback\nE: v\nended error in ")) << done.err;
}

// The traceback of an interrupt says how it was stopped, not why.
TEST_F(RunTest, AStoppedRunSaysWhyAndWhichLimitItWas) {
    played_.events =
        "event: error\ndata: {\"name\":\"KeyboardInterrupt\",\"value\":\"\",\"traceback\":"
        "[\"KeyboardInterrupt\"]}\n\n";
    played_.ended =
        R"({"end_reason":"timeout","message":"it ran too long","limit":{"name":"timeout_ms",)"
        R"("value":2000},"metrics":{"wall_ms":2010,"cpu_ms":0,"memory_peak_bytes":1000000}})";
    const Outcome done = run({"-c", "1"});
    EXPECT_EQ(done.code, 124);
    EXPECT_NE(done.err.find("it ran too long\n"), std::string::npos) << done.err;
    EXPECT_TRUE(done.err.ends_with(" · limit timeout_ms 2000\n")) << done.err;
}

TEST_F(RunTest, LimitsGoIntoTheRequest) {
    run({"--cpu-time", "1.5", "--pids", "16", "--output-max", "64K", "--timeout", "2s", "-c", "1"});
    EXPECT_EQ(played_.run.at("cpu_time_ms"), 1500);
    EXPECT_EQ(played_.run.at("pids"), 16);
    EXPECT_EQ(played_.run.at("output_max_bytes"), 65'536);
    EXPECT_EQ(played_.run.at("timeout_ms"), 2000);
}

TEST_F(RunTest, QuietIsOnlyTheProgram) {
    played_.events = "event: stdout\ndata: {\"text\":\"only this\"}\n\n";
    played_.ended = R"({"end_reason":"timeout","message":"over"})";
    const Outcome done = run({"--quiet", "-c", "1"});
    EXPECT_EQ(done.code, 124);
    EXPECT_EQ(done.out + "|" + done.err, "only this|");
}

TEST_F(RunTest, JsonIsOneEventALine) {
    const Outcome done = run({"--json", "-c", "1"});
    const size_t first_end = done.out.find('\n');
    const json::object first = parse_object(done.out.substr(0, first_end)).value();
    EXPECT_EQ(first.at("event"), "started");
    EXPECT_EQ(first.at("id"), 1);
    EXPECT_NE(done.out.find("\"event\":\"ended\""), std::string::npos);
    EXPECT_EQ(done.err, "");
}

TEST_F(RunTest, ListsFilesOrFetchesThem) {
    played_.ended =
        R"({"end_reason":"ok","artifacts":[)"
        R"({"path":"/home/user/res/a.txt","size":17,"mime":"text/plain","url":"/v1/runs/r/artifacts/0"},)"
        R"({"path":"/home/user/../../etc/x","size":1,"mime":"text/plain","url":"/v1/runs/r/artifacts/1"}]})";
    const Outcome listed = run({"-c", "1"});
    EXPECT_NE(listed.err.find("  res/a.txt  17 B\n"), std::string::npos) << listed.err;
    EXPECT_FALSE(std::filesystem::exists("res"));
    const Outcome fetched = run({"--out", "got", "-c", "1"});
    EXPECT_EQ(os::read_file("got/res/a.txt", 100).value(), "bytes of the file");
    EXPECT_FALSE(was_asked("GET /v1/runs/r/artifacts/1"));  // it would lie outside the directory
    EXPECT_NE(fetched.err.find("saved got/res/a.txt (17 B)"), std::string::npos) << fetched.err;
}

TEST_F(RunTest, AsksHowARunEndedWhoseStreamBroke) {
    played_.breaks_off = true;
    played_.ended = R"({"end_reason":"sandbox_lost","message":"the service stopped"})";
    const Outcome done = run({"-c", "1"});
    EXPECT_EQ(done.code, 117);
    EXPECT_NE(done.err.find("ended sandbox_lost"), std::string::npos) << done.err;
}

TEST_F(RunTest, WrongUsageIsSaidBeforeAnythingIsMade) {
    const std::vector<Words> all = {
        {},
        {"--no-such-flag", "-c", "1"},
        {"--timeout", "soon", "-c", "1"},
        {"--env", "novalue", "-c", "1"},
        {"--language", "cobol", "-c", "1"},
        {"--memory", "lots", "-c", "1"},
        {"--cpu", "0", "-c", "1"},
        {"-c", "\xFF"},
    };
    for (const Words& words : all) {
        const Outcome done = run(words);
        EXPECT_EQ(done.code, 2) << ::testing::PrintToString(words);
        EXPECT_NE(done.err, "") << ::testing::PrintToString(words);
    }
    EXPECT_EQ(run({"nothing.py"}).code, 66);
    EXPECT_EQ(run({"--file", "nothing.csv", "-c", "1"}).code, 66);
    EXPECT_TRUE(played_.asked.empty());
}

TEST_F(RunTest, NobodyAnswers) {
    url_ = "http://127.0.0.1:9";
    const Outcome done = run({"-c", "1"});
    EXPECT_EQ(done.code, 69);
    EXPECT_NE(done.err.find("serve"), std::string::npos) << done.err;
}

}  // namespace
}  // namespace cloister::cli
