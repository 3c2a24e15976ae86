// The whole agent as a client sees it: it runs in a forked child, with a small driver of our own in
// place of a real interpreter.
#include "programs/agent/agent.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <filesystem>
#include <thread>

#include "base/ids.h"
#include "base/limits.h"
#include "base/time.h"
#include "os/process_table.h"
#include "os/socket.h"

namespace cloister::agent {
namespace {

namespace fs = std::filesystem;

// Speaks the driver's half of the protocol and runs Python code, nothing more.
constexpr const char* kDriver = R"py(
import json, os, signal, socket, struct, sys, time
agent = socket.socket(fileno=3)
def send(kind, content={}, raw=None):
    body = raw or json.dumps({"msg_type": kind, "content": content}).encode()
    agent.sendall(struct.pack("<I", len(body)) + body)
def take(size):
    data = b""
    while len(data) < size:
        part, ancillary, _, _ = agent.recvmsg(size - len(data), 64)
        if not part: os._exit(0)
        for _, _, blob in ancillary: os.dup2(struct.unpack("i", blob)[0], 0)
        data += part
    return data
def running(code, names):
    try:
        send("status", {"execution_state": "busy"})
        exec(code, names)
        return 0
    except SystemExit as end:
        return end.code
    except BaseException as error:
        send("error", {"ename": type(error).__name__, "evalue": str(error), "traceback": [], "line": 1})
        return 130 if isinstance(error, KeyboardInterrupt) else 1
def sync():
    sys.stdout.flush()
    send("stream_sync")
    assert json.loads(take(struct.unpack("<I", take(4))[0]))["msg_type"] == "stream_sync_reply"
signal.signal(signal.SIGINT, signal.SIG_IGN)
send("kernel_info_reply", {"language": "python"})
names = dict(globals())
while True:
    message = json.loads(take(struct.unpack("<I", take(4))[0]))
    if message["msg_type"] != "execute_request":
        names["besides"] = message["msg_type"]
        continue
    content = names["content"] = message["content"]
    if "stdin_path" in content: os.dup2(os.open(content["stdin_path"], os.O_RDONLY), 0)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    code = running(content["code"], names)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    sys.stdout.flush()
    send("execute_reply", {"status": "ok", "exit_code": code, "execution_count": 7, "cwd": os.getcwd()})
)py";

// A client's end of one connection.
class Client {
  public:
    explicit Client(const std::string& path)
        : socket_(os::connect_unix(path, os::SocketKind::Stream).value()) {
        // A test that waits for ever would say nothing.
        const timeval patience{.tv_sec = 20, .tv_usec = 0};
        ::setsockopt(socket_.get(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
    }

    void send(FrameKind kind, std::string_view payload) {
        std::string bytes;
        append_frame(bytes, kind, payload);
        send_raw(bytes);
    }
    void send_raw(std::string_view bytes) {
        // The agent may have cut the connection off: the test sees that in what it reads.
        (void)os::write_all(socket_, bytes);
    }
    // The next frame; nullopt at the end of the connection.
    std::optional<Frame> next() {
        for (;;) {
            std::optional<Frame> frame = decoder_.next().value();
            if (frame) return frame;
            std::string chunk(limits::kStreamChunk, '\0');
            const ssize_t got = ::read(socket_.get(), chunk.data(), chunk.size());
            if (got <= 0) return std::nullopt;
            decoder_.feed(std::string_view(chunk).substr(0, static_cast<size_t>(got)));
        }
    }
    json::object answer() {
        const auto frame = next();
        if (!frame) return {{"lost", true}};
        return parse_object(frame->payload).value();
    }
    void close_input() { ::shutdown(socket_.get(), SHUT_WR); }

  private:
    os::Fd socket_;
    FrameDecoder decoder_;
};

// A whole run as its client saw it.
struct Seen {
    std::string out, err;
    std::vector<json::object> events;  // json events in order
    std::string order;                 // S started, o stdout, e stderr, and so on, E ended
    json::object ended;
    int64_t took_ms = 0;

    std::string reason() const { return std::string(ended.at("reason").as_string()); }
    const json::object* find(std::string_view name) const {
        for (const auto& event : events) {
            if (event.at("event").as_string() == name) return &event;
        }
        return nullptr;
    }
};

class AgentTest : public testing::Test {
  protected:
    void SetUp() override {
        directory_ = fs::temp_directory_path() / ("agent-" + new_id());
        home_ = directory_ / "home";
        fs::create_directories(home_);
        ASSERT_EQ(::chmod(directory_.c_str(), 0755), 0);
        ASSERT_EQ(::chown(home_.c_str(), limits::kUserId, limits::kUserId), 0);
        socket_ = directory_ / "agent.sock";
        root_socket_ = directory_ / "root" / "root.sock";
        spool_ = directory_ / "spool";
        fs::create_directories(spool_);
        start_agent();
    }

    void TearDown() override {
        for (const pid_t pid : os::descendants_in(os::read_process_table(), agent_))
            ::kill(pid, SIGKILL);
        ::kill(agent_, SIGKILL);
        ::waitpid(agent_, nullptr, 0);
        fs::remove_all(directory_);
    }

    void start_agent() {
        Birth birth;
        birth.listener = os::listen_unix(socket_, os::SocketKind::Stream, 64).value();
        birth.spool = os::open_file(spool_, O_RDONLY | O_DIRECTORY).value();
        auto ready = os::make_pipe().value();
        birth.ready = std::move(ready.write);
        birth.record.root_allowed = root_allowed_;
        // What the kernel would count, as files.
        count("cpu", "0\n");
        count("memory", "oom_kill 0\n");
        birth.cpu_usage = os::open_file(directory_ / "cpu", O_RDONLY).value();
        birth.memory_events = os::open_file(directory_ / "memory", O_RDONLY).value();
        oom_event_ = os::Fd(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
        birth.oom_event = oom_event_.duplicate().value();
        birth.record.memory_max = 1 << 30;
        Settings settings{
            .home = home_,
            .root_socket = root_socket_,
            .drivers = {{"python", {.argv = {"/usr/bin/python3", "-uc", kDriver}}},
                        {"fifo",
                         {.argv = {"/usr/bin/python3", "-uc", kDriver},
                          .interrupt = Interrupt::SignalAndMessage,
                          .fifo_directory = directory_ / "run"}},
                        {"none", {.argv = {"/usr/bin/there-is-no-such-program"}}},
                        {"broken", {.argv = {"/bin/sh", "-c", "echo no module >&2; exit 3"}}}}};
        agent_ = ::fork();
        if (agent_ == 0) {
            ::prctl(PR_SET_CHILD_SUBREAPER, 1);  // as the first process of a sandbox
            (void)Agent(std::move(birth), std::move(settings)).serve();
            ::_exit(1);
        }
        birth.ready.reset();
        ASSERT_EQ(os::read_all(ready.read, 10).value().substr(0, 1), "1");
    }

    void count(const char* name, std::string_view text) const {
        ASSERT_TRUE(os::write_all(
            os::open_file(directory_ / name, O_WRONLY | O_CREAT, 0644).value(), text));
    }

    json::object ask(const std::string& request) const {
        Client client(socket_);
        client.send(FrameKind::Json, request);
        return client.answer();
    }

    std::string prepare(std::string_view language = "python") const {
        const std::string id = new_id();
        const auto answer = ask(prepare_request(id, language));
        EXPECT_TRUE(answer.at("ok").as_bool()) << json::serialize(answer);
        return id;
    }
    static std::string prepare_request(const std::string& id, std::string_view language) {
        return fmt::format(R"({{"op":"context.prepare","context":"{}","language":"{}"}})", id,
                           language);
    }

    static std::string run_request(const std::string& context, std::string_view code,
                                   std::string_view more = {}, const std::string& id = new_id()) {
        return fmt::format(R"({{"op":"run","run":"{}","context":"{}","code":{}{}}})", id, context,
                           json::serialize(json::string(code)), more);
    }
    Seen run(const std::string& context, std::string_view code, std::string_view more = {}) const {
        Client client(socket_);
        client.send(FrameKind::Json, run_request(context, code, more));
        return watch(client);
    }
    static Seen watch(Client& client) {
        Seen seen;
        const int64_t start = steady_ms();
        while (auto frame = client.next()) {
            if (frame->kind != FrameKind::Json) {
                (frame->kind == FrameKind::Stdout ? seen.out : seen.err) += frame->payload;
                const char mark = frame->kind == FrameKind::Stdout ? 'o' : 'e';
                if (!seen.order.ends_with(mark)) seen.order += mark;
                continue;
            }
            json::object event = parse_object(frame->payload).value();
            EXPECT_TRUE(event.contains("event")) << frame->payload.substr(0, 300);
            if (!event.contains("event")) return seen;
            const std::string name(event.at("event").as_string());
            seen.order += name == "started" ? 'S' : name == "ended" ? 'E' : name[0];
            if (name == "ended") seen.ended = event;
            seen.events.push_back(std::move(event));
            if (name == "ended") break;
        }
        seen.took_ms = steady_ms() - start;
        return seen;
    }

    json::object state() const { return ask(R"({"op":"state"})"); }
    static std::string about_run(std::string_view op, const std::string& id) {
        return fmt::format(R"({{"op":"{}","run":"{}"}})", op, id);
    }
    // The bytes of a range of what a run wrote.
    std::string output_of(const std::string& id, std::string_view stream, uint64_t offset = 0,
                          uint64_t length = INT64_MAX) const {
        Client client(socket_);
        client.send(FrameKind::Json,
                    fmt::format(R"({{"op":"run.output","run":"{}","stream":"{}","offset":{},)"
                                R"("length":{}}})",
                                id, stream, offset, length));
        EXPECT_TRUE(client.answer().at("ok").as_bool());
        std::string all;
        for (;;) {
            const auto frame = client.next();
            if (!frame) return "(cut off)";
            if (frame->payload.empty()) return all;
            all += frame->payload;
        }
    }
    Seen attach(const std::string& id) const {
        Client client(socket_);
        client.send(FrameKind::Json, about_run("run.attach", id));
        EXPECT_TRUE(client.answer().at("ok").as_bool());
        return watch(client);
    }
    void wait_for(const std::string& name) const {
        for (int i = 0; i < 200 && !fs::exists(home_ / name); ++i) {
            std::this_thread::sleep_for(std::chrono::milliseconds(50));
        }
        EXPECT_TRUE(fs::exists(home_ / name));
    }

    fs::path directory_, home_, spool_;
    std::string socket_, root_socket_;
    uint32_t root_allowed_ = 1;
    os::Fd oom_event_;
    pid_t agent_ = -1;
};

TEST_F(AgentTest, SaysHello) {
    const auto answer = ask(R"({"op":"hello"})");
    EXPECT_EQ(answer.at("protocol").as_int64(), 1);
    EXPECT_EQ(answer.at("version").as_string(), CLOISTER_VERSION);
}

TEST_F(AgentTest, CutsOffWhoDoesNotSpeakTheProtocol) {
    for (const std::string& bytes :
         {std::string("\xff\xff\xff\xff\x01", 5), std::string("\0\0\0\0\x01", 5)}) {
        Client client(socket_);
        client.send_raw(bytes);
        EXPECT_FALSE(client.next());
    }
    Client client(socket_);
    client.send(FrameKind::Stdin, "{}");
    EXPECT_FALSE(client.answer().at("ok").as_bool());
    EXPECT_EQ(ask("[1,2").at("error").as_object().at("kind").as_string(), "invalid_argument");
    EXPECT_TRUE(ask(R"({"op":"hello"})").at("ok").as_bool());
}

TEST_F(AgentTest, ManyIdleConnectionsOnlyWait) {
    std::vector<std::unique_ptr<Client>> idle;
    idle.reserve(limits::kAgentConnectionsMax + 5);
    for (size_t i = 0; i < limits::kAgentConnectionsMax + 5; ++i) {
        idle.push_back(std::make_unique<Client>(socket_));
    }
    Client last(socket_);
    last.send(FrameKind::Json, R"({"op":"hello"})");
    idle.clear();
    EXPECT_TRUE(last.answer().at("ok").as_bool());
}

TEST_F(AgentTest, RunsCodeAndKeepsItsState) {
    const std::string context = prepare();
    const Seen first = run(context, "x = 41; print('hi')");
    EXPECT_EQ(first.order, "SoE");
    EXPECT_EQ(first.out, "hi\n");
    EXPECT_EQ(first.reason(), "ok");
    EXPECT_EQ(first.ended.at("exit_code").as_int64(), 0);
    EXPECT_EQ(first.ended.at("execution_count").as_int64(), 7);
    EXPECT_EQ(run(context, "print(x + 1)").out, "42\n");
}

TEST_F(AgentTest, UserCodeHasNoPrivilegeAndNoDescriptorOfTheAgent) {
    const Seen seen =
        run(prepare(),
            "print(os.getuid(), os.getgid(), os.getgroups(), sorted(os.listdir("
            "'/proc/self/fd'))[:-1])\n"
            "print([l for l in open('/proc/self/status') if l[:3] in ('Cap', 'NoN')])");
    EXPECT_EQ(seen.out.substr(0, seen.out.find('\n')), "1000 1000 [] ['0', '1', '2', '3']");
    EXPECT_EQ(seen.out.find("CapBnd:\\t0000000000000000\\n") != std::string::npos, true);
    EXPECT_EQ(seen.out.find("NoNewPrivs:\\t1\\n") != std::string::npos, true);
}

TEST_F(AgentTest, PassesTheRequestOn) {
    const Seen seen = run(prepare(), "del content['code']; print(content)",
                          R"(,"filename":"a.py","argv":["a.py","é"],"env":{"K":"V"},"cwd":"/tmp")");
    EXPECT_EQ(seen.out,
              "{'filename': 'a.py', 'argv': ['a.py', 'é'], 'cwd': '/tmp', 'env': {'K': 'V'}, "
              "'stdin': False}\n");
}

TEST_F(AgentTest, ADisplayComesAfterTheOutputBeforeIt) {
    const std::string display =
        "send('display_data', {'data': {'text/plain': '1'}, 'metadata': {}})\n";
    const std::string context = prepare();
    const Seen seen = run(context, "print('x' * 300_000)\n" + display);
    EXPECT_EQ(seen.order, "SodE");
    EXPECT_EQ(seen.out.size(), 300'001U);
}

TEST_F(AgentTest, ASyncKeepsTheOrderOfAllStreams) {
    const Seen seen = run(prepare(),
                          "for i in range(20):\n"
                          "  print(i); sync(); print(i, file=sys.stderr)\n"
                          "  send('display_data', {'data': {'text/plain': str(i)}}); sync()");
    std::string expected = "S";
    for (int i = 0; i < 20; ++i) expected += "oed";
    EXPECT_EQ(seen.order, expected + "E");
}

TEST_F(AgentTest, EventsHoldWhatTheDriverSaid) {
    const Seen seen =
        run(prepare(),
            "send('execute_result', {'data': {'text/plain': '2'}, 'metadata': {}, "
            "'execution_count': 3})\n"
            "send('update_display_data', {'data': {}, 'transient': {'display_id': 'd\\u00e9'}})\n"
            "send('clear_output', {'wait': True})\n"
            "send('error', {'ename': 'E', 'evalue': 7, 'traceback': 'x'})\n"
            "send('unknown', {'data': 1})");
    EXPECT_EQ(json::serialize(*seen.find("result")),
              R"({"event":"result","data":{"text/plain":"2"},"metadata":{},"execution_count":3})");
    EXPECT_EQ(json::serialize(*seen.find("display_update")),
              R"({"event":"display_update","data":{},"metadata":{},"display_id":"dé"})");
    EXPECT_TRUE(seen.find("clear_output")->at("wait").as_bool());
    EXPECT_EQ(json::serialize(*seen.find("error")),
              R"({"event":"error","name":"E","value":"","traceback":[]})");
    EXPECT_EQ(seen.reason(), "ok");
}

TEST_F(AgentTest, LargeDisplaysPassAndTooLargeOnesEndTheDriver) {
    const std::string context = prepare();
    const Seen large = run(context,
                           "send('display_data', {'data': {'text/plain': 'x' * 8_000_000}})\n"
                           "send('display_data', {'data': {'text/plain': 'y' * 8_000_000}})");
    EXPECT_EQ(large.order, "SddE");
    EXPECT_EQ(large.events[2].at("data").as_object().at("text/plain").as_string().size(),
              8'000'000U);
    const Seen beyond = run(context, "send('', raw=b'x' * 9_000_000)");
    EXPECT_EQ(beyond.reason(), "kernel_died");
}

TEST_F(AgentTest, ADriverThatSendsNonsenseIsEnded) {
    for (const char* nonsense : {"b'nonsense'", "b'{\"msg_type\":\"error\"}'", "b'\\xff'"}) {
        const Seen seen = run(prepare(), fmt::format("send('', raw={}); time.sleep(9)", nonsense));
        EXPECT_EQ(seen.reason(), "kernel_died");
        EXPECT_TRUE(seen.ended.at("state_lost").as_bool());
        EXPECT_LT(seen.took_ms, 5000);
    }
}

TEST_F(AgentTest, AnErrorIsNoLostState) {
    const std::string context = prepare();
    const Seen seen = run(context, "y = 1\n1/0");
    EXPECT_EQ(seen.reason(), "error");
    EXPECT_EQ(seen.ended.at("exit_code").as_int64(), 1);
    EXPECT_EQ(seen.find("error")->at("name").as_string(), "ZeroDivisionError");
    EXPECT_FALSE(seen.ended.at("state_lost").as_bool());
    EXPECT_EQ(run(context, "print(y)").out, "1\n");
    EXPECT_EQ(run(context, "sys.exit(3)").ended.at("exit_code").as_int64(), 3);
}

TEST_F(AgentTest, ATimeoutInterruptsAndKeepsOutputAndState) {
    const std::string context = prepare();
    const Seen seen =
        run(context, "z = 1; print('so far'); time.sleep(30)", R"(,"timeout_ms":300)");
    EXPECT_EQ(seen.reason(), "timeout");
    EXPECT_EQ(seen.out, "so far\n");
    EXPECT_EQ(seen.find("step")->at("action").as_string(), "interrupt");
    EXPECT_FALSE(seen.ended.at("state_lost").as_bool());
    EXPECT_LT(seen.took_ms, 1300);
    EXPECT_EQ(run(context, "print(z)").out, "1\n");
}

TEST_F(AgentTest, ATimeoutEndsWhatDoesNotListen) {
    for (const char* code :
         {"signal.signal(signal.SIGINT, signal.SIG_IGN)\nwhile True: pass",
          "os.kill(os.getpid(), signal.SIGSTOP)",
          "import subprocess\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\n"
          "subprocess.run(['setsid', 'sh', '-c', 'trap \"\" INT TERM; while :; do :; done'])"}) {
        const std::string context = prepare();
        // Long enough that the code has closed its ears by then, on a busy machine too.
        const Seen seen = run(context, code, R"(,"timeout_ms":1500)");
        EXPECT_EQ(seen.reason(), "timeout") << code;
        EXPECT_TRUE(seen.ended.at("state_lost").as_bool());
        EXPECT_EQ(seen.ended.at("exit_code").as_int64(), 137);
        ASSERT_EQ(seen.order, "SssE") << code;
        const auto after_ms = [&](size_t event) {
            return seen.events.at(event).at("after_ms").as_int64();
        };
        EXPECT_GE(after_ms(1), 1500) << "the interrupt";
        EXPECT_GE(after_ms(2), after_ms(1) + limits::kInterruptGraceMs) << "the kill";
        EXPECT_LT(seen.took_ms, 1500 + 5000);
        EXPECT_EQ(ask(run_request(context, "1")).at("error").as_object().at("kind").as_string(),
                  "not_found");
    }
    // The shell of its own session is gone too; the agent's helper for files stays.
    EXPECT_LE(os::descendants_in(os::read_process_table(), agent_).size(), 1U);
}

TEST_F(AgentTest, ATimeoutEndsWhatTheRunStartedAndNothingElse) {
    const std::string context = prepare();
    const std::string start =
        "import subprocess\n"
        "p = subprocess.Popen(['sleep', '60'], start_new_session=True)\n";
    run(context, start + "earlier = p; time.sleep(0.05)");
    const Seen seen = run(context, start + "time.sleep(60)", R"(,"timeout_ms":300)");
    EXPECT_EQ(seen.reason(), "timeout");
    EXPECT_FALSE(seen.ended.at("state_lost").as_bool());
    EXPECT_EQ(run(context, "print(p.wait(5), earlier.poll()); earlier.kill()").out, "-9 None\n");
}

TEST_F(AgentTest, ATimeoutEndsDaemonsThatForkedAway) {
    const std::string context = prepare();
    const std::string daemon =
        "import subprocess\n"
        "subprocess.run(['sh', '-c', '(setsid setsid sh -c \"echo \\$\\$ > {}; exec sleep 60\" &) "
        "&'])\n"
        "while not os.path.exists('{}') or not open('{}').read(): time.sleep(0.01)\n";
    const auto start = [&](const std::string& name) {
        std::string code = daemon;
        for (size_t at = code.find("{}"); at != std::string::npos; at = code.find("{}"))
            code.replace(at, 2, name);
        return code;
    };
    const auto pid_in = [this](const char* name) {
        return std::stoi(os::read_file(home_ / name, 100).value());
    };
    EXPECT_EQ(run(context, start("earlier") + "time.sleep(0.05)").reason(), "ok");
    const Seen polite = run(context, start("polite") + "time.sleep(60)", R"(,"timeout_ms":600)");
    EXPECT_EQ(polite.reason(), "timeout");
    EXPECT_FALSE(polite.ended.at("state_lost").as_bool());
    const Seen deaf = run(context,
                          start("deaf") +
                              "signal.signal(signal.SIGINT, signal.SIG_IGN)\n"
                              "while True: pass",
                          R"(,"timeout_ms":600)");
    EXPECT_EQ(deaf.reason(), "timeout");
    EXPECT_TRUE(deaf.ended.at("state_lost").as_bool());
    EXPECT_EQ(::kill(pid_in("earlier"), 0), 0) << "of a run that had ended";
    for (const char* name : {"polite", "deaf"}) {
        for (int i = 0; i < 100 && ::kill(pid_in(name), 0) == 0; ++i)
            std::this_thread::sleep_for(std::chrono::milliseconds(10));
        EXPECT_NE(::kill(pid_in(name), 0), 0) << name;
    }
}

TEST_F(AgentTest, ATimeoutOfOneContextSparesTheOthers) {
    const std::string context = prepare(), other = prepare();
    Client neighbour(socket_);
    neighbour.send(FrameKind::Json,
                   run_request(other,
                               "import subprocess; p = subprocess.Popen(['sleep', '60'])\n"
                               "time.sleep(1); print(p.poll()); p.kill()"));
    const Seen seen = run(context, "while True: pass", R"(,"timeout_ms":300)");
    EXPECT_EQ(seen.reason(), "timeout");
    EXPECT_EQ(watch(neighbour).out, "None\n");
}

TEST_F(AgentTest, CpuTimeIsALimit) {
    const std::string context = prepare();
    Client client(socket_);
    client.send(FrameKind::Json,
                run_request(context, "print('up'); time.sleep(30)", R"(,"cpu_time_ms":100)"));
    while (auto frame = client.next()) {
        if (frame->kind == FrameKind::Stdout) break;
    }
    count("cpu", "100000000\n");  // nanoseconds
    const Seen seen = watch(client);
    EXPECT_EQ(seen.reason(), "cpu_limit");
    EXPECT_EQ(json::serialize(seen.ended.at("limit")), R"({"name":"cpu_time_ms","value":100})");
    EXPECT_EQ(seen.find("step")->at("action").as_string(), "interrupt");
    EXPECT_FALSE(seen.ended.at("state_lost").as_bool());
    EXPECT_EQ(run(context, "print(1)").reason(), "ok");
}

TEST_F(AgentTest, TheMemoryLimitTakesTheWholeSandbox) {
    const std::string context = prepare(), other = prepare();
    Client neighbour(socket_);
    neighbour.send(FrameKind::Json, run_request(other, "print('up'); time.sleep(30)"));
    Client client(socket_);
    client.send(FrameKind::Json, run_request(context, "print('up'); time.sleep(30)"));
    for (Client* each : {&neighbour, &client}) {
        while (auto frame = each->next()) {
            if (frame->kind == FrameKind::Stdout) break;
        }
    }
    // The kernel tells, then kills.
    const uint64_t one = 1;
    ASSERT_EQ(::write(oom_event_.get(), &one, sizeof(one)), ssize_t{sizeof(one)});
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    count("memory", "oom_kill 1\n");
    for (Client* each : {&neighbour, &client}) {
        const Seen seen = watch(*each);
        EXPECT_EQ(seen.reason(), "oom");
        EXPECT_EQ(seen.ended.at("exit_code").as_int64(), 137);
        EXPECT_TRUE(seen.ended.at("state_lost").as_bool());
        EXPECT_EQ(json::serialize(seen.ended.at("limit")),
                  R"({"name":"memory_max_bytes","value":1073741824})");
    }
    EXPECT_EQ(run(prepare(), "print('again')").out, "again\n");
}

TEST_F(AgentTest, AProgramThatTheMemoryLimitKilledIsTheEndOfItsRunToo) {
    const std::string context = prepare();
    Client client(socket_);
    client.send(FrameKind::Json, run_request(context, "print('up'); time.sleep(1); sys.exit(1)"));
    while (auto frame = client.next()) {
        if (frame->kind == FrameKind::Stdout) break;
    }
    count("memory", "oom_kill 1\n");  // without an event: the reply itself is looked at
    const Seen ended = watch(client);
    EXPECT_EQ(ended.reason(), "oom");
    EXPECT_EQ(ended.ended.at("exit_code").as_int64(), 137);
}

TEST_F(AgentTest, AFullDiskIsTheReasonOfARunThatFailedOnIt) {
    const std::string context = prepare();
    const std::string report =
        "send('error', {'ename': 'OSError', 'evalue': '', 'traceback': [], 'disk_error': 122})\n";
    const Seen full = run(context, report + "sys.exit(1)");
    EXPECT_EQ(full.reason(), "disk_full");
    EXPECT_EQ(run(context, report + "sys.exit(0)").reason(), "ok");
    const std::string suspect =
        "send('error', {'ename': 'E', 'evalue': '', 'traceback': [], 'disk_error': -1})\n"
        "sys.exit(1)";
    EXPECT_EQ(run(context, suspect, R"(,"artifacts":true)").reason(), "error")
        << "there is room here";
    const std::string in_reply =
        "send('execute_reply', {'exit_code': 1, 'disk_error': 28})\n"
        "time.sleep(0.5)";
    EXPECT_EQ(run(prepare(), in_reply).reason(), "disk_full");
}

TEST_F(AgentTest, AnInterruptBeforeTheCodeBeganIsNotLost) {
    const Seen seen = run(prepare(), "time.sleep(30)", R"(,"timeout_ms":1)");
    EXPECT_EQ(seen.reason(), "timeout");
    EXPECT_FALSE(seen.ended.at("state_lost").as_bool());
}

TEST_F(AgentTest, InterruptStopsTheRunThatItNames) {
    const std::string context = prepare();
    for (const char* reason : {"interrupted", "cancelled"}) {
        const std::string id = new_id();
        Client client(socket_);
        client.send(FrameKind::Json, run_request(context, "print('up'); time.sleep(30)", {}, id));
        while (auto frame = client.next()) {
            if (frame->kind == FrameKind::Stdout) break;
        }
        const std::string request =
            fmt::format(R"({{"op":"run.interrupt","run":"{}","reason":"{}"}})", id, reason);
        EXPECT_TRUE(ask(request).at("ok").as_bool());
        EXPECT_EQ(watch(client).reason(), reason);
        EXPECT_EQ(ask(request).at("error").as_object().at("kind").as_string(), "not_found");
    }
}

TEST_F(AgentTest, ADriverThatAsksForItGetsAMessageBesidesTheSignal) {
    const std::string context = prepare("fifo");
    EXPECT_EQ(run(context, "time.sleep(30)", R"(,"timeout_ms":200)").reason(), "timeout");
    EXPECT_EQ(run(context, "print(besides)").out, "interrupt_request\n");
    const std::string other = prepare();
    EXPECT_EQ(run(other, "time.sleep(30)", R"(,"timeout_ms":200)").reason(), "timeout");
    EXPECT_EQ(run(other, "print('besides' in globals())").out, "False\n");
}

TEST_F(AgentTest, OutputOverTheLimitIsCutThereAndEndsTheRun) {
    const Seen seen = run(prepare(), "while True: print('x' * 999)", R"(,"output_max":5500)");
    EXPECT_EQ(seen.reason(), "output_limit");
    EXPECT_EQ(seen.out.size(), 5500U);
    EXPECT_LT(seen.took_ms, 3000);
}

TEST_F(AgentTest, AnInterpretersDeathEndsTheRunWithItsCode) {
    const Seen left = run(prepare(), "print('last words'); os._exit(5)");
    EXPECT_EQ(left.reason(), "kernel_died");
    EXPECT_EQ(left.out, "last words\n");
    EXPECT_EQ(left.ended.at("exit_code").as_int64(), 5);
    const Seen crashed = run(prepare(), "os.kill(os.getpid(), signal.SIGSEGV)");
    EXPECT_EQ(crashed.ended.at("exit_code").as_int64(), 139);
}

TEST_F(AgentTest, AProgramInTheBackgroundDelaysNothing) {
    const std::string context = prepare();
    const Seen seen = run(context,
                          "import subprocess\n"
                          "p = subprocess.Popen(['sh', '-c', 'while :; do echo noise; done'])\n"
                          "time.sleep(0.2)");
    EXPECT_EQ(seen.reason(), "ok");
    EXPECT_LT(seen.took_ms, 3000);
    EXPECT_EQ(run(context, "p.kill()").reason(), "ok");
}

TEST_F(AgentTest, StdinIsPassedOnWholeAndEnds) {
    Client client(socket_);
    client.send(FrameKind::Json,
                run_request(prepare(), "print(len(sys.stdin.read()))", R"(,"stdin":"stream")"));
    std::thread sender([&] {
        const std::string chunk(limits::kStreamChunk, 'x');
        for (int i = 0; i < 40; ++i) client.send(FrameKind::Stdin, chunk);
        client.send(FrameKind::Stdin, {});
    });
    const Seen seen = watch(client);
    sender.join();
    EXPECT_EQ(seen.out, fmt::format("{}\n", 40 * 64 * 1024));
}

TEST_F(AgentTest, ADriverThatAsksForItGetsStdinByItsPath) {
    const std::string context = prepare("fifo");
    Client client(socket_);
    client.send(
        FrameKind::Json,
        run_request(context, "print(os.path.exists(content['stdin_path']), sys.stdin.read())",
                    R"(,"stdin":"stream")"));
    client.send(FrameKind::Stdin, "abc");
    client.send(FrameKind::Stdin, {});
    EXPECT_EQ(watch(client).out, "True abc\n");
    EXPECT_EQ(run(context, "print('stdin_path' in content)").out, "False\n");
    EXPECT_TRUE(fs::is_empty(directory_ / "run"));
}

TEST_F(AgentTest, AnInterruptEndsAFifoThatIsBeingRead) {
    Client client(socket_);
    client.send(
        FrameKind::Json,
        run_request(prepare("fifo"),
                    "signal.signal(signal.SIGINT, signal.SIG_IGN); sys.stdin.read(); print('end')",
                    R"(,"stdin":"stream","timeout_ms":200)"));
    const Seen seen = watch(client);
    EXPECT_EQ(seen.out, "end\n");
    EXPECT_FALSE(seen.ended.at("state_lost").as_bool());
}

TEST_F(AgentTest, StandardStreamsMayBeOpenedByTheirNames) {
    Client client(socket_);
    client.send(FrameKind::Json,
                run_request(prepare(),
                            "open('/dev/stdout', 'w').write(open('/dev/stdin').read())\n"
                            "open('/dev/stderr', 'w').write('err')",
                            R"(,"stdin":"stream")"));
    client.send(FrameKind::Stdin, "text");
    client.send(FrameKind::Stdin, "");
    const Seen seen = watch(client);
    EXPECT_EQ(seen.out, "text");
    EXPECT_EQ(seen.err, "err");
    EXPECT_EQ(seen.reason(), "ok");
}

TEST_F(AgentTest, ADriverMaySayThatItsStateIsLost) {
    const std::string context = prepare();
    EXPECT_FALSE(run(context, "1").ended.at("state_lost").as_bool());
    const Seen seen = run(context,
                          "send('execute_reply', {'exit_code': 0, 'state_lost': True})\n"
                          "import time; time.sleep(1)");
    EXPECT_EQ(seen.reason(), "ok");
    EXPECT_TRUE(seen.ended.at("state_lost").as_bool());
}

TEST_F(AgentTest, AClientThatClosesItsSideEndsStdinAndStillReads) {
    Client client(socket_);
    client.send(FrameKind::Json,
                run_request(prepare(), "print(sys.stdin.read())", R"(,"stdin":"stream")"));
    client.send(FrameKind::Stdin, "abc");
    client.close_input();
    EXPECT_EQ(watch(client).out, "abc\n");
}

TEST_F(AgentTest, ARunGoesOnWithoutItsClient) {
    const std::string context = prepare();
    {
        Client client(socket_);
        client.send(FrameKind::Json, run_request(context,
                                                 "for i in range(3000): print('x' * 1000)\n"
                                                 "time.sleep(0.3)\nopen('done', 'w').close()"));
        ASSERT_TRUE(client.next());
    }
    for (int i = 0; i < 100 && !fs::exists(home_ / "done"); ++i) {
        std::this_thread::sleep_for(std::chrono::milliseconds(50));
    }
    EXPECT_TRUE(fs::exists(home_ / "done"));
}

TEST_F(AgentTest, WhatARunDidWithoutItsClientIsThereForTheNextOne) {
    const std::string context = prepare(), id = new_id();
    {
        Client client(socket_);
        client.send(FrameKind::Json,
                    run_request(context,
                                "for i in range(100_000): print(i)\n"
                                "open('gap', 'w').close()\n"
                                "while not os.path.exists('go'): time.sleep(0.01)\n"
                                "print('end')",
                                {}, id));
        ASSERT_TRUE(client.next());
    }
    wait_for("gap");
    const json::object before = state();
    EXPECT_EQ(json::serialize(before.at("runs")),
              fmt::format(R"([{{"run":"{}","context":"{}","ended":false}}])", id, context));
    EXPECT_EQ(json::serialize(before.at("contexts")),
              fmt::format(R"([{{"context":"{}","language":"python","ready":true,)"
                          R"("started":"plain","busy":true}}])",
                          context));
    Client next(socket_);
    next.send(FrameKind::Json, about_run("run.attach", id));
    EXPECT_EQ(next.answer().at("stdin_bytes").as_int64(), 0);
    ASSERT_TRUE(os::write_file_atomically(home_ / "go", "", 0644));
    const Seen seen = watch(next);
    std::string expected;
    for (int i = 0; i < 100'000; ++i) expected += fmt::format("{}\n", i);
    EXPECT_TRUE(seen.out == expected + "end\n") << seen.out.size();
    EXPECT_EQ(seen.order, "SoE");
    EXPECT_EQ(seen.reason(), "ok");
    EXPECT_EQ(fs::exists(spool_ / id), true);
    EXPECT_TRUE(attach(id).out == seen.out) << "the same again, after its end";
    EXPECT_TRUE(ask(about_run("run.forget", id)).at("ok").as_bool());
    EXPECT_EQ(ask(about_run("run.attach", id)).at("error").as_object().at("kind").as_string(),
              "not_found");
    EXPECT_TRUE(state().at("runs").as_array().empty());
    EXPECT_TRUE(output_of(id, "stdout") == seen.out) << "its output can still be read";
}

TEST_F(AgentTest, TheOutputOfARunIsReadByRange) {
    const std::string context = prepare(), id = new_id();
    Client client(socket_);
    client.send(FrameKind::Json,
                run_request(context,
                            "import sys\nsys.stdout.buffer.write(b'a\\xff\\0b')\n"
                            "sys.stdout.flush()\nprint('err', file=sys.stderr)\nprint('end')",
                            {}, id));
    EXPECT_EQ(watch(client).reason(), "ok");
    const std::string out("a\xFF\0bend\n", 8);
    EXPECT_EQ(output_of(id, "stdout"), out);
    EXPECT_EQ(output_of(id, "stderr"), "err\n");
    EXPECT_EQ(output_of(id, "all").size(), out.size() + 4);
    EXPECT_EQ(output_of(id, "stdout", 1, 4), out.substr(1, 4));
    EXPECT_EQ(output_of(id, "stdout", 8), "");
    const json::object refused = ask(about_run("run.output", new_id()));
    EXPECT_EQ(refused.at("error").as_object().at("kind").as_string(), "not_found");
}

TEST_F(AgentTest, BeyondItsLimitARunMayGoOn) {
    const std::string context = prepare();
    const Seen seen = run(context, "print('x' * 5000)\nprint('end')",
                          R"(,"output_max":100,"on_output_limit":"discard")");
    EXPECT_EQ(seen.reason(), "ok");
    EXPECT_EQ(seen.out, std::string(100, 'x'));
    const json::object& usage = seen.ended.at("usage").as_object();
    EXPECT_EQ(usage.at("output_bytes").as_int64(), 5005);
    EXPECT_EQ(usage.at("discarded_bytes").as_int64(), 4905);
}

TEST_F(AgentTest, ALittleOutputMakesNoFile) {
    const std::string context = prepare(), id = new_id();
    Client client(socket_);
    client.send(FrameKind::Json, run_request(context, "print(1)", {}, id));
    EXPECT_EQ(watch(client).reason(), "ok");
    EXPECT_EQ(attach(id).out, "1\n");
    EXPECT_TRUE(fs::is_empty(spool_));
    const std::string more = fmt::format(R"(,"forget":"{}")", id);
    EXPECT_EQ(run(context, "print(2)", more).out, "2\n");
    EXPECT_EQ(state().at("runs").as_array().size(), 1U) << "the next run forgot it";
}

TEST_F(AgentTest, AfterARunItsConnectionTakesAnotherOperation) {
    const std::string context = prepare();
    Client client(socket_);
    for (const char* code : {"print(1)", "print(2)"}) {
        client.send(FrameKind::Json, run_request(context, code));
        const Seen seen = watch(client);
        EXPECT_EQ(seen.reason(), "ok");
        EXPECT_EQ(seen.out, std::string(1, code[6]) + "\n");
    }
    client.send(FrameKind::Json, R"({"op":"hello"})");
    EXPECT_TRUE(client.answer().at("ok").as_bool());
    EXPECT_FALSE(client.next()) << "every other operation ends its connection";
}

TEST_F(AgentTest, ARunBeginsOnlyOnce) {
    const std::string context = prepare(), id = new_id();
    for (const char* expected : {"", "already_exists"}) {
        Client client(socket_);
        client.send(FrameKind::Json, run_request(context, "open('n', 'a').write('1')", {}, id));
        const json::object first = client.answer();
        if (*expected == '\0') {
            EXPECT_EQ(watch(client).reason(), "ok");
        } else {
            EXPECT_EQ(first.at("error").as_object().at("kind").as_string(), expected);
        }
    }
    EXPECT_EQ(os::read_file(home_ / "n", 10).value(), "1");
}

TEST_F(AgentTest, StdinGoesOnWithTheNextClient) {
    const std::string id = new_id();
    {
        Client client(socket_);
        client.send(FrameKind::Json,
                    run_request(prepare(),
                                "print(sys.stdin.readline())\nopen('read', 'w').close()\n"
                                "print(sys.stdin.read())",
                                R"(,"stdin":"stream")", id));
        client.send(FrameKind::Stdin, "one\n");
        wait_for("read");
    }
    Client next(socket_);
    next.send(FrameKind::Json, about_run("run.attach", id));
    EXPECT_EQ(next.answer().at("stdin_bytes").as_int64(), 4);
    next.send(FrameKind::Stdin, "two");
    next.send(FrameKind::Stdin, {});
    EXPECT_EQ(watch(next).out, "one\n\ntwo\n");
}

TEST_F(AgentTest, OutputWithoutAClientEndsAtItsLimit) {
    const std::string context = prepare(), id = new_id();
    {
        Client client(socket_);
        client.send(FrameKind::Json, run_request(context, "while True: print('x' * 9_999)",
                                                 R"(,"output_max":3000000)", id));
        ASSERT_TRUE(client.next());
    }
    for (int i = 0; i < 200; ++i) {
        const auto runs = state().at("runs").as_array();
        if (runs.at(0).as_object().at("ended").as_bool()) break;
        std::this_thread::sleep_for(std::chrono::milliseconds(50));
    }
    const Seen seen = attach(id);
    EXPECT_EQ(seen.reason(), "output_limit");
    EXPECT_EQ(seen.out.size(), 3'000'000U);
}

TEST_F(AgentTest, AStartThatLostItsClientIsJoined) {
    const std::string id = new_id();
    {
        Client client(socket_);
        client.send(FrameKind::Json, prepare_request(id, "python"));
    }
    Client second(socket_), third(socket_);
    second.send(FrameKind::Json, prepare_request(id, "python"));
    third.send(FrameKind::Json, prepare_request(id, "python"));
    EXPECT_TRUE(third.answer().at("ok").as_bool());
    EXPECT_EQ(run(id, "print(1)").out, "1\n");
}

TEST_F(AgentTest, ASlowReaderStopsTheProgramAndNothingElse) {
    const std::string context = prepare();
    Client slow(socket_);
    slow.send(FrameKind::Json, run_request(context,
                                           "for i in range(300): print('x' * 99_999)\n"
                                           "open('done', 'w').close()"));
    std::this_thread::sleep_for(std::chrono::milliseconds(700));
    EXPECT_FALSE(fs::exists(home_ / "done"));
    EXPECT_TRUE(ask(R"({"op":"hello"})").at("ok").as_bool());
    EXPECT_EQ(run(prepare(), "print(1)").out, "1\n");
    EXPECT_EQ(watch(slow).out.size(), 30'000'000U);
}

TEST_F(AgentTest, ATimeoutDoesNotWaitForASlowReader) {
    const std::string context = prepare();
    Client slow(socket_);
    slow.send(FrameKind::Json,
              run_request(context, "while True: print('x' * 99_999)", R"(,"timeout_ms":300)"));
    std::this_thread::sleep_for(std::chrono::milliseconds(1300));
    // The context is free, or gone: the run is over although nobody has read.
    const auto answer = ask(prepare_request(context, "python"));
    EXPECT_TRUE(answer.at("ok").as_bool());
    EXPECT_EQ(watch(slow).reason(), "timeout");
}

TEST_F(AgentTest, OneRunAtATimeInAContextThatIsThere) {
    const std::string context = prepare();
    Client client(socket_);
    client.send(FrameKind::Json, run_request(context, "print(1); time.sleep(1)"));
    ASSERT_TRUE(client.next());
    EXPECT_EQ(ask(run_request(context, "2")).at("error").as_object().at("kind").as_string(),
              "failed_precondition");
    EXPECT_EQ(ask(run_request(new_id(), "2")).at("error").as_object().at("kind").as_string(),
              "not_found");
    EXPECT_EQ(watch(client).reason(), "ok");
}

TEST_F(AgentTest, AContextThatCannotStartSaysWhy) {
    const auto message = [this](std::string_view language) {
        const auto answer = ask(prepare_request(new_id(), language));
        EXPECT_FALSE(answer.at("ok").as_bool());
        return std::string(answer.at("error").as_object().at("message").as_string());
    };
    EXPECT_NE(message("none").find("executing /usr/bin/there-is-no-such-program: No such file"),
              std::string::npos);
    EXPECT_NE(message("broken").find("(exit code 3): no module"), std::string::npos);
    EXPECT_NE(message("cobol").find("no interpreter for `cobol`"), std::string::npos);
}

TEST_F(AgentTest, DeletingAContextEndsItsRun) {
    const std::string context = prepare();
    Client client(socket_);
    client.send(FrameKind::Json, run_request(context, "print(1); time.sleep(30)"));
    ASSERT_TRUE(client.next());
    const std::string request = fmt::format(R"({{"op":"context.delete","context":"{}"}})", context);
    EXPECT_TRUE(ask(request).at("ok").as_bool());
    EXPECT_EQ(watch(client).reason(), "cancelled");
    EXPECT_TRUE(ask(request).at("ok").as_bool());
    EXPECT_TRUE(ask(prepare_request(context, "python")).at("ok").as_bool());
}

TEST_F(AgentTest, ListsTheFilesThatTheRunChanged) {
    const std::string context = prepare();
    run(context, "open('old.txt', 'w').write('1'); open('touched.txt', 'w').write('1')");
    std::this_thread::sleep_for(std::chrono::milliseconds(30));
    const Seen seen =
        run(context,
            "os.makedirs('sub/deep'); os.makedirs('.cache'); os.makedirs('__pycache__')\n"
            "for name in ('sub/deep/b.txt', 'a.txt', '.hidden', '.cache/x', "
            "'__pycache__/y'):\n  open(name, 'w').write('12345')\n"
            "os.chmod('touched.txt', 0o600); os.symlink('/etc/passwd', 'link')\n"
            "open(b'bad\\xff', 'w').close(); os.chdir('/')",
            R"(,"artifacts":true)");
    const json::array& artifacts = seen.ended.at("artifacts").as_array();
    std::vector<std::string> paths;
    for (const auto& artifact : artifacts) {
        paths.emplace_back(artifact.as_object().at("path").as_string());
    }
    const std::string home = home_;
    EXPECT_EQ(paths, (std::vector<std::string>{home + "/a.txt", home + "/sub/deep/b.txt",
                                               home + "/touched.txt"}));
    EXPECT_EQ(artifacts.at(0).as_object().at("size").as_int64(), 5);
    EXPECT_EQ(seen.ended.at("artifacts_left_out").as_int64(), 1);
}

TEST_F(AgentTest, FilesAreWrittenWholeAndReadByRange) {
    const std::string content(300'000, 'f');
    Client writer(socket_);
    writer.send(FrameKind::Json, R"({"op":"file.write","path":"new/dir/f.bin","mode":416})");
    ASSERT_TRUE(writer.answer().at("ok").as_bool());
    for (size_t i = 0; i < content.size(); i += 60'000) {
        writer.send(FrameKind::Data, content.substr(i, 60'000));
    }
    writer.send(FrameKind::Data, {});
    EXPECT_EQ(writer.answer().at("size").as_int64(), 300'000);
    struct stat about{};
    ASSERT_EQ(::stat((home_ / "new/dir/f.bin").c_str(), &about), 0);
    EXPECT_EQ(about.st_mode & 07777, 0640U);
    EXPECT_EQ(about.st_uid, limits::kUserId);

    Client reader(socket_);
    reader.send(FrameKind::Json,
                R"({"op":"file.read","path":"new/dir/f.bin","offset":299990,"length":50})");
    EXPECT_EQ(reader.answer().at("size").as_int64(), 300'000);
    EXPECT_EQ(reader.next()->payload, "ffffffffff");
    EXPECT_TRUE(reader.next()->payload.empty());
    EXPECT_FALSE(reader.next());
}

TEST_F(AgentTest, ABrokenUploadLeavesTheOldFile) {
    const fs::path file = home_ / "kept.txt";
    ASSERT_EQ(run(prepare(), "open('kept.txt', 'w').write('old')").reason(), "ok");
    {
        Client writer(socket_);
        writer.send(FrameKind::Json, R"({"op":"file.write","path":"kept.txt"})");
        ASSERT_TRUE(writer.answer().at("ok").as_bool());
        writer.send(FrameKind::Data, "new");
    }
    const auto entries = [this] {
        return std::distance(fs::directory_iterator(home_), fs::directory_iterator());
    };
    for (int i = 0; i < 100 && entries() > 1; ++i) {
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
    EXPECT_EQ(entries(), 1);
    EXPECT_EQ(os::read_file(file, 10).value(), "old");
}

TEST_F(AgentTest, FileErrorsSayWhatToDo) {
    const auto kind = [this](const std::string& request) {
        const auto answer = ask(request);
        EXPECT_FALSE(answer.at("ok").as_bool()) << request;
        return std::string(answer.at("error").as_object().at("kind").as_string());
    };
    EXPECT_EQ(kind(R"({"op":"file.read","path":"none"})"), "not_found");
    EXPECT_EQ(kind(R"({"op":"file.read","path":"/etc/shadow"})"), "permission_denied");
    EXPECT_EQ(kind(R"({"op":"file.read","path":"/"})"), "invalid_argument");
    EXPECT_EQ(kind(R"({"op":"file.read","path":"/dev/zero"})"), "invalid_argument");
    EXPECT_EQ(kind(R"({"op":"file.write","path":"/etc/new"})"), "permission_denied");
    EXPECT_EQ(kind(R"({"op":"file.write","path":"/tmp"})"), "invalid_argument");
    ASSERT_EQ(run(prepare(), "os.mkfifo('fifo')").reason(), "ok");
    EXPECT_EQ(kind(R"({"op":"file.read","path":"fifo"})"), "invalid_argument");
}

TEST_F(AgentTest, AFileHelperThatWasKilledOrStoppedIsReplaced) {
    const std::string context = prepare();
    for (const int signal : {SIGKILL, SIGSTOP}) {
        for (const pid_t pid : os::descendants_in(os::read_process_table(), agent_)) {
            const auto name = os::read_file(fmt::format("/proc/{}/comm", pid), 100);
            if (name && !name->starts_with("python")) ::kill(pid, signal);
        }
        const Seen seen = run(context, "open('x', 'a').write('1')", R"(,"artifacts":true)");
        EXPECT_EQ(seen.reason(), "ok");
        EXPECT_LT(seen.took_ms, 6000);
        EXPECT_EQ(run(context, "open('x', 'a').write('1')", R"(,"artifacts":true)")
                      .ended.at("artifacts")
                      .as_array()
                      .size(),
                  1U);
    }
}

// --- The door for sudo ---

// What `sudo` does: sends a request with three descriptors, whose last two are a pipe.
class RootClient {
  public:
    explicit RootClient(const std::string& path)
        : socket_(os::connect_unix(path, os::SocketKind::Stream).value()),
          out_(os::make_pipe().value()),
          null_(os::open_file("/dev/null", O_RDONLY).value()) {
        const timeval patience{.tv_sec = 20, .tv_usec = 0};
        ::setsockopt(socket_.get(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
    }

    void ask(RootRequest request) {
        request.cwd = "/";
        const int out = out_.write.get();
        // One that is refused at once may find the other end closed: its reply is there.
        (void)os::send_with_fds(socket_, "s", {null_.get(), out, out});
        (void)os::write_all(socket_, encode(request).value());
        out_.write.reset();
    }
    void signal(int number) {
        const auto byte = static_cast<char>(number);
        ASSERT_TRUE(os::write_all(socket_, {&byte, 1}));
    }
    RootReply reply() {
        std::string bytes(1024, '\0');
        const ssize_t got = ::read(socket_.get(), bytes.data(), bytes.size());
        bytes.resize(static_cast<size_t>(std::max<ssize_t>(got, 0)));
        return decode_root_reply(bytes).value_or(RootReply{.refusal = "no reply"});
    }
    std::string line() const {
        std::string text;
        for (char c = 0; ::read(out_.read.get(), &c, 1) == 1 && c != '\n';) text += c;
        return text;
    }
    void leave() { socket_.reset(); }
    // Whether everybody who could write to the output is gone soon.
    bool output_ends() const {
        pollfd polled{.fd = out_.read.get(), .events = 0, .revents = 0};
        return ::poll(&polled, 1, 20'000) == 1 && (polled.revents & POLLHUP) != 0;
    }

  private:
    os::Fd socket_;
    os::Pipe out_;
    os::Fd null_;
};

RootRequest shell(const std::string& script, RootIdentity identity = RootIdentity::Root) {
    return {.identity = identity, .argv = {"/bin/sh", "-c", script}, .env = {"PATH=/usr/bin:/bin"}};
}

TEST_F(AgentTest, StartsCommandsAsRootInsideAndSaysHowTheyEnded) {
    RootClient client(root_socket_);
    client.ask(shell("id -u; grep -c 400fb /proc/self/status; exit 3"));
    EXPECT_EQ(client.line(), "0");
    EXPECT_EQ(client.line(), "3") << "permitted, effective and bounding set";
    EXPECT_EQ(client.reply().exit_code, 3);
    RootClient user(root_socket_);
    user.ask(shell("id -u; kill -9 $$", RootIdentity::User));
    EXPECT_EQ(user.line(), std::to_string(limits::kUserId));
    EXPECT_EQ(user.reply().exit_code, 128 + SIGKILL);
}

TEST_F(AgentTest, PassesSignalsToTheCommand) {
    RootClient client(root_socket_);
    client.ask(shell("trap 'exit 9' TERM; echo up; while :; do sleep 0.05; done"));
    EXPECT_EQ(client.line(), "up");
    client.signal(SIGTERM);
    EXPECT_EQ(client.reply().exit_code, 9);
}

TEST_F(AgentTest, ACommandEndsWithItsClient) {
    RootClient client(root_socket_);
    client.ask(shell("trap '' TERM; echo $$; while :; do sleep 0.05; done"));
    EXPECT_NE(client.line(), "");
    client.leave();
    EXPECT_TRUE(client.output_ends());
}

TEST_F(AgentTest, RefusesWhatItCannotStart) {
    RootClient missing(root_socket_);
    missing.ask({.argv = {"/usr/bin/there-is-no-such-program"}});
    const RootReply reply = missing.reply();
    EXPECT_FALSE(reply.exit_code);
    EXPECT_EQ(reply.refusal,
              "executing /usr/bin/there-is-no-such-program: No such file or directory");
    RootClient question(root_socket_);
    question.ask({.argv = {}});
    EXPECT_EQ(question.reply().exit_code, 0);
}

TEST_F(AgentTest, BoundsTheCommandsAtOnce) {
    std::vector<std::unique_ptr<RootClient>> idle;
    idle.reserve(limits::kRootCommandsMax);
    for (size_t i = 0; i < limits::kRootCommandsMax; ++i) {
        idle.push_back(std::make_unique<RootClient>(root_socket_));
    }
    RootClient beyond(root_socket_);
    EXPECT_NE(beyond.reply().refusal.find("wait for one to end"), std::string::npos);
    idle.clear();
    // The agent notices by and by that they are gone.
    RootReply reply;
    for (const int64_t deadline = steady_ms() + 20'000; steady_ms() < deadline;) {
        RootClient again(root_socket_);
        again.ask(shell("exit 0"));
        reply = again.reply();
        if (reply.exit_code) break;
    }
    EXPECT_EQ(reply.exit_code, 0);
}

TEST_F(AgentTest, WithoutRootStartsOnlyTheUser) {
    TearDown();
    root_allowed_ = 0;
    SetUp();
    RootClient root(root_socket_);
    root.ask(shell("exit 0"));
    EXPECT_NE(root.reply().refusal.find("its template does not allow it"), std::string::npos);
    RootClient user(root_socket_);
    user.ask(shell("exit 4", RootIdentity::User));
    EXPECT_EQ(user.reply().exit_code, 4);
}

}  // namespace
}  // namespace cloister::agent
