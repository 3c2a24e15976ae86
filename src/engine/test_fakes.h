// For unit tests of this room: a warden and agents on real unix sockets, on the test's own loop.
// The code of a run says what the agent does:
//
//     print TEXT     writes it, ends ok            fail           ends with an error
//     hang           waits for an interrupt        deaf           ignores interrupts, too
//     vanish TEXT    writes it, then the connection breaks off
//     die            the interpreter dies (state lost)
//     flood N        N pieces of 64 KiB            cat            writes its stdin back
//     file PATH      lists PATH as an artifact     garbage        sends what is no frame
//     await N        writes 0 … N-1, then waits for go(), then writes the same again and ends ok
#pragma once

#include <filesystem>
#include <fstream>
#include <list>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/ids.h"
#include "engine/agent.h"
#include "engine/engine.h"
#include "engine/test_loop.h"
#include "os/socket.h"
#include "wire/layout.h"
#include "wire/warden.h"

namespace cloister::engine {

// One accepted connection: frames in, frames out.
class FakePeer {
  public:
    explicit FakePeer(UnixStream stream) : stream_(std::move(stream)) {}

    Task<std::optional<Frame>> next() {
        for (;;) {
            auto frame = decoder_.next();
            if (!frame) co_return std::nullopt;
            if (*frame) co_return std::move(**frame);
            auto bytes = co_await stream_.read_some(limits::kStreamChunk);
            if (!bytes || bytes->empty()) co_return std::nullopt;
            decoder_.feed(*bytes);
        }
    }
    Task<void> send(FrameKind kind, std::string payload) {
        std::string bytes;
        append_frame(bytes, kind, payload);
        (void)co_await stream_.write(std::move(bytes));
    }
    Task<void> event(json::object object) {
        co_await send(FrameKind::Json, json::serialize(object));
    }
    Task<void> raw(std::string bytes) { (void)co_await stream_.write(std::move(bytes)); }
    void close() { stream_.close(); }

  private:
    UnixStream stream_;
    FrameDecoder decoder_;
};

inline json::object ended_event(std::string_view reason) {
    return {{"event", "ended"},
            {"reason", reason},
            {"exit_code", reason == "ok" ? json::value(0) : json::value(1)},
            {"message", ""},
            {"state_lost", reason == "kernel_died"},
            {"limits_hit", json::array()},
            {"usage",
             {{"wall_ms", 5}, {"cpu_ms", 3}, {"memory_peak_bytes", 4096}, {"output_bytes", 2}}},
            {"artifacts", json::array()},
            {"artifacts_left_out", 0},
            {"execution_count", 1}};
}

class FakeAgent : public std::enable_shared_from_this<FakeAgent> {
  public:
    static std::shared_ptr<FakeAgent> start(const std::string& socket) {
        auto listener = os::listen_unix(socket, os::SocketKind::Stream, 64);
        auto agent = std::make_shared<FakeAgent>(std::move(*listener));
        spawn(accept(agent));
        return agent;
    }
    explicit FakeAgent(os::Fd listener) : listener_(std::move(listener)) {}

    void die() {
        alive_ = false;
        listener_.reset();
        for (const auto& peer : peers_) peer->close();
        changed_.notify_all();
    }
    void go() {
        may_go = true;
        changed_.notify_all();
    }
    // Everything that a run has sent, and who reads it now.
    struct FakeRun {
        std::string context;
        std::vector<Frame> sent;
        std::shared_ptr<FakePeer> reader;
        bool ended = false;
    };
    bool may_go = false;
    bool forks = false;              // its interpreters
    bool mute = false;               // it does not say what goes on in it
    int64_t stdin_bytes = 0;         // what it says that it has got
    std::string stdin_later;         // what came of stdin after an attach
    size_t prepared = 0;             // how many interpreters were started
    std::vector<std::string> asked;  // operations
    std::map<std::string, FakeRun> runs;
    std::vector<std::string> ran;
    std::map<std::string, std::string> files;

  private:
    static Task<void> accept(std::shared_ptr<FakeAgent> self) {
        while (self->alive_) {
            auto connection = os::accept_connection(self->listener_);
            if (connection && *connection) {
                auto peer = std::make_shared<FakePeer>(
                    std::move(*UnixStream::adopt(std::move(**connection))));
                self->peers_.insert(peer);
                spawn(serve(self, peer));
            } else {
                co_await sleep_for(std::chrono::milliseconds(1));
            }
        }
    }

    static Task<void> serve(std::shared_ptr<FakeAgent> self, std::shared_ptr<FakePeer> peer) {
        const auto first = co_await peer->next();
        if (first) {
            const json::object request = *parse_agent_object(first->payload);
            const std::string op(request.at("op").as_string());
            self->asked.push_back(op);
            if (op == "context.prepare") co_await self->prepare(*peer, request);
            if (op == "context.delete") co_await self->remove(*peer, request);
            if (op == "run") co_await self->run(peer, request);
            if (op == "run.attach") co_await self->attach(peer, request);
            if (op == "run.forget") co_await self->forget(*peer, request);
            if (op == "state") co_await self->tell_state(*peer);
            if (op == "run.interrupt") co_await self->interrupt(*peer, request);
            if (op == "file.write") co_await self->write_file(*peer, request);
            if (op == "file.read") co_await self->read_file(*peer, request);
        }
        peer->close();
        self->peers_.erase(peer);
    }

    Task<void> say(std::string id, FrameKind kind, std::string payload) {
        FakeRun& run = runs[id];
        run.sent.push_back({.kind = kind, .payload = payload});
        if (const auto reader = run.reader) co_await reader->send(kind, std::move(payload));
    }

    Task<void> attach(std::shared_ptr<FakePeer> peer, json::object request) {
        const std::string id(request.at("run").as_string());
        if (!runs.contains(id)) {
            co_await refuse(*peer, "not_found");
            co_return;
        }
        FakeRun& run = runs.at(id);
        if (run.reader) run.reader->close();
        co_await peer->event({{"ok", true}, {"stdin_bytes", stdin_bytes}});
        for (size_t i = 0; i < run.sent.size(); ++i) {
            const Frame frame = run.sent[i];
            co_await peer->send(frame.kind, frame.payload);
        }
        run.reader = peer;
        while (const auto frame = co_await peer->next()) stdin_later += frame->payload;
    }

    Task<void> forget(FakePeer& peer, const json::object& request) {
        runs.erase(std::string(request.at("run").as_string()));
        co_await peer.event({{"ok", true}});
    }

    Task<void> tell_state(FakePeer& peer) {
        if (mute) {
            while (alive_) co_await changed_.wait();
            co_return;
        }
        json::array contexts, all;
        for (const std::string& id : contexts_) {
            contexts.push_back({{"context", id},
                                {"language", "python"},
                                {"ready", true},
                                {"started", "forked"},
                                {"busy", false}});
        }
        for (const auto& [id, run] : runs) {
            all.push_back({{"run", id}, {"context", run.context}, {"ended", run.ended}});
        }
        co_await peer.event({{"ok", true}, {"contexts", contexts}, {"runs", all}});
    }

    static Task<void> refuse(FakePeer& peer, std::string_view kind) {
        co_await peer.event(
            {{"ok", false}, {"error", {{"kind", kind}, {"message", "no"}, {"os_error", 0}}}});
    }

    Task<void> remove(FakePeer& peer, const json::object& request) {
        const std::string context(request.at("context").as_string());
        contexts_.erase(context);
        for (const auto& [id, run] : runs) {
            if (run.context == context && !run.ended) interrupted_[id] = "cancelled";
        }
        changed_.notify_all();
        co_await peer.event({{"ok", true}});
    }

    Task<void> prepare(FakePeer& peer, const json::object& request) {
        if (request.at("cwd").as_string() == "/forbidden") {
            co_await refuse(peer, "failed_precondition");
            co_return;
        }
        ++prepared;
        contexts_.insert(std::string(request.at("context").as_string()));
        co_await peer.event({{"ok", true}, {"started", forks ? "forked" : "plain"}});
    }

    Task<void> interrupt(FakePeer& peer, const json::object& request) {
        const std::string id(request.at("run").as_string());
        if (!runs.contains(id) || runs.at(id).ended) {
            co_await refuse(peer, "not_found");
            co_return;
        }
        interrupted_[id] = std::string(request.at("reason").as_string());
        changed_.notify_all();
        co_await peer.event({{"ok", true}});
    }

    Task<void> run(std::shared_ptr<FakePeer> peer, json::object request) {
        const std::string context(request.at("context").as_string());
        if (!contexts_.contains(context)) {
            co_await refuse(*peer, "not_found");
            co_return;
        }
        if (const auto* old = request.if_contains("forget"))
            runs.erase(std::string(old->as_string()));
        const std::string id(request.at("run").as_string());
        const std::string code(request.at("code").as_string());
        ran.push_back(code);
        runs[id] = {.context = context, .sent = {}, .reader = peer};
        co_await say(id, FrameKind::Json, R"({"event":"started"})");
        co_await act(*peer, id, context, code);
        changed_.notify_all();
    }

    Task<void> act(FakePeer& peer, const std::string& id, const std::string& context,
                   const std::string& code) {
        const std::string word = code.substr(0, code.find(' '));
        const std::string rest = code.size() > word.size() ? code.substr(word.size() + 1) : "";
        std::string reason = "ok";
        if (word == "print" || word == "vanish") co_await say(id, FrameKind::Stdout, rest);
        if (word == "vanish") co_return;
        if (word == "garbage") co_await peer.raw(std::string(9, '\xFF'));
        if (word == "deaf") {
            while (alive_) co_await changed_.wait();
            co_return;
        }
        while (word == "hang" && alive_ && !interrupted_.contains(id)) co_await changed_.wait();
        if (word == "hang") reason = interrupted_[id];
        if (word == "fail") reason = "error";
        if (word == "die") {
            contexts_.erase(context);
            reason = "kernel_died";
        }
        if (word == "flood") co_await flood(id, std::stoul(rest));
        if (word == "cat") co_await cat(peer, id);
        if (word == "await") co_await await_go(id, std::stoul(rest));
        if (word == "stopping") {
            co_await say(id, FrameKind::Json, R"({"event":"step","action":"kill","after_ms":1})");
            while (alive_ && !may_go) co_await changed_.wait();
        }
        json::object ended = ended_event(reason);
        if (word == "file")
            ended["artifacts"] = json::array{{{"path", rest}, {"size", 1}, {"modified_ms", 1}}};
        runs[id].ended = true;
        co_await say(id, FrameKind::Json, json::serialize(ended));
    }

    Task<void> flood(std::string id, size_t pieces) {
        for (size_t i = 0; i < pieces; ++i) {
            co_await say(id, FrameKind::Stdout, std::string(limits::kStreamChunk, 'x'));
        }
    }

    Task<void> cat(FakePeer& peer, std::string id) {
        for (;;) {
            const auto frame = co_await peer.next();
            if (!frame || frame->payload.empty()) co_return;
            co_await say(id, FrameKind::Stdout, frame->payload);
        }
    }

    Task<void> await_go(std::string id, size_t lines) {
        for (size_t round = 0; round < 2; ++round) {
            while (round == 1 && alive_ && !may_go) co_await changed_.wait();
            for (size_t i = 0; i < lines; ++i) {
                co_await say(id, FrameKind::Stdout, std::to_string(i) + "\n");
            }
        }
    }

    Task<void> write_file(FakePeer& peer, const json::object& request) {
        const std::string path(request.at("path").as_string());
        if (path == "/forbidden") {
            co_await refuse(peer, "permission_denied");
            co_return;
        }
        co_await peer.event({{"ok", true}});
        std::string bytes;
        for (;;) {
            const auto frame = co_await peer.next();
            if (!frame) co_return;
            if (frame->payload.empty()) break;
            bytes += frame->payload;
        }
        files[path] = bytes;
        co_await peer.event({{"ok", true}, {"size", bytes.size()}, {"entry", entry(path)}});
    }

    static json::object entry(const std::string& path) {
        return {{"path", path},     {"type", "file"},   {"size", 1},      {"mode", 420},
                {"uid", 1000},      {"gid", 1000},      {"user", "user"}, {"group", "user"},
                {"modified_ms", 1}, {"etag", "1-1-1-1"}};
    }

    Task<void> read_file(FakePeer& peer, const json::object& request) {
        const auto found = files.find(std::string(request.at("path").as_string()));
        if (found == files.end()) {
            co_await refuse(peer, "not_found");
            co_return;
        }
        co_await peer.event(
            {{"ok", true}, {"size", found->second.size()}, {"entry", entry(found->first)}});
        if (!found->second.empty()) co_await peer.send(FrameKind::Data, found->second);
        co_await peer.send(FrameKind::Data, "");
    }

    os::Fd listener_;
    bool alive_ = true;
    std::set<std::shared_ptr<FakePeer>> peers_;
    std::set<std::string> contexts_;
    std::map<std::string, std::string> interrupted_;
    Signal changed_;
};

class FakeWarden : public std::enable_shared_from_this<FakeWarden> {
  public:
    static std::shared_ptr<FakeWarden> start(const std::string& data) {
        auto listener = os::listen_unix(layout::warden_socket(data), os::SocketKind::SeqPacket, 8);
        auto warden = std::make_shared<FakeWarden>(data, std::move(*listener));
        spawn(accept(warden));
        return warden;
    }
    FakeWarden(std::string data, os::Fd listener)
        : data_(std::move(data)), listener_(std::move(listener)) {}

    std::map<std::string, std::shared_ptr<FakeAgent>> agents;  // the sandboxes that it has
    bool refuses = false;                                      // creates fail
    bool silent = false;                                       // nothing is answered
    uint64_t memory_in_use = 0;                                // of each sandbox
    uint64_t cpu_ms = 0;                                       // likewise
    uint64_t memory_used = 0;                                  // likewise
    bool freezes = true;
    bool has_zygote = false;
    std::set<std::string> frozen;
    std::vector<std::string> revived;
    std::set<std::string> ended;                  // has their files only: says so after each hello
    std::vector<warden::NarrowRequest> narrowed;  // as they came

    // The warden's process dies, and takes its sandboxes with it.
    void break_off() {
        for (const auto& stream : streams_) stream->close();
        streams_.clear();
        for (const auto& [id, agent] : agents) agent->die();
        agents.clear();
    }
    Task<void> report_ended(std::string id) {
        agents.at(id)->die();
        for (const auto& stream : streams_) {
            (void)co_await stream->write(warden::encode(
                warden::Reply(warden::EndedEvent{.sandbox = *warden::Id::from(id), .signal = 9})));
        }
    }
    void stop() { listening_ = false; }

  private:
    static Task<void> accept(std::shared_ptr<FakeWarden> self) {
        while (self->listening_) {
            auto connection = os::accept_connection(self->listener_);
            if (connection && *connection) {
                auto stream = std::make_shared<UnixStream>(
                    std::move(*UnixStream::adopt(std::move(**connection))));
                self->streams_.insert(stream);
                spawn(serve(self, stream));
            } else {
                co_await sleep_for(std::chrono::milliseconds(1));
            }
        }
    }

    static Task<void> serve(std::shared_ptr<FakeWarden> self, std::shared_ptr<UnixStream> stream) {
        for (;;) {
            const auto message = co_await stream->read_some(limits::kWardenMessageMax);
            if (!message || message->empty()) co_return;
            const auto request = warden::decode_request(*message);
            if (!request || self->silent) continue;
            for (const warden::Reply& reply : self->answer(*request)) {
                (void)co_await stream->write(warden::encode(reply));
            }
        }
    }

    std::vector<warden::Reply> answer(const warden::Request& request) {
        if (const auto* hello = std::get_if<warden::HelloRequest>(&request)) {
            std::vector<warden::Reply> said{
                warden::HelloReply{.tag = hello->tag,
                                   .templates = {*warden::Id::from(std::string(20, 'b'))},
                                   .cgroup_mode = 1,
                                   .enforced = 15,
                                   .host_cpus = 2,
                                   .host_memory = 1 << 30,
                                   .pool_bytes = 1 << 30,
                                   .pool_free = 1 << 29}};
            for (const std::string& id : ended)
                said.push_back(warden::EndedEvent{.sandbox = *warden::Id::from(id), .signal = 9});
            return said;
        }
        if (const auto* create = std::get_if<warden::CreateRequest>(&request))
            return {create_one(*create)};
        if (const auto* destroy = std::get_if<warden::DestroyRequest>(&request)) {
            const auto found = agents.find(std::string(destroy->sandbox.view()));
            if (found != agents.end()) found->second->die();
            agents.erase(std::string(destroy->sandbox.view()));
            return {warden::done(destroy->tag, {})};
        }
        if (const auto* narrow = std::get_if<warden::NarrowRequest>(&request))
            return {narrow_one(*narrow)};
        if (const auto* usage = std::get_if<warden::UsageRequest>(&request)) {
            return {warden::UsageReply{.tag = usage->tag,
                                       .cpu_ms = cpu_ms,
                                       .memory_bytes = memory_used,
                                       .disk_bytes = 4096}};
        }
        if (const auto* freeze = std::get_if<warden::FreezeRequest>(&request)) {
            if (!freezes)
                return {warden::done(freeze->tag, make_error(ErrorKind::Unimplemented, "no"))};
            const std::string id(freeze->sandbox.view());
            if (freeze->frozen == 1)
                frozen.insert(id);
            else
                frozen.erase(id);
            return {warden::done(freeze->tag, {})};
        }
        if (const auto* revive = std::get_if<warden::ReviveRequest>(&request)) {
            const std::string id(revive->sandbox.view());
            agents[id] = FakeAgent::start(layout::agent_socket(data_, id));
            revived.push_back(id);
            return {warden::done(revive->tag, {})};
        }
        if (const auto* pool = std::get_if<warden::PoolRequest>(&request)) {
            return {warden::PoolReply{
                .tag = pool->tag, .bytes = 1 << 30, .free = 1 << 29, .template_bytes = 1 << 20}};
        }
        std::vector<warden::Reply> out;
        const auto& list = std::get<warden::ListRequest>(request);
        for (const auto& [id, agent] : agents) {
            out.push_back(warden::ListReply{.tag = list.tag, .sandbox = *warden::Id::from(id)});
        }
        out.push_back(warden::ListReply{.tag = list.tag, .sandbox = {}, .last = 1});
        return out;
    }

    warden::Reply narrow_one(const warden::NarrowRequest& request) {
        if (request.memory_max != 0 && request.memory_max < memory_in_use) {
            return warden::done(request.tag,
                                make_error(ErrorKind::FailedPrecondition, "it uses more"));
        }
        narrowed.push_back(request);
        return warden::done(request.tag, {});
    }

    warden::Reply create_one(const warden::CreateRequest& request) {
        if (refuses) {
            return warden::done(request.tag, make_error(ErrorKind::ResourceExhausted, "no room"));
        }
        const std::string id(request.plan.sandbox.view());
        agents[id] = FakeAgent::start(layout::agent_socket(data_, id));
        agents[id]->forks = has_zygote;
        return warden::done(request.tag, {});
    }

    const std::string data_;
    os::Fd listener_;
    bool listening_ = true;
    std::set<std::shared_ptr<UnixStream>> streams_;
};

// A data directory that goes with the object.
class DataDirectory {
  public:
    DataDirectory()
        : path_(std::filesystem::temp_directory_path() / ("cl-" + new_id().substr(0, 8))) {
        std::filesystem::create_directories(path_ + "/run/agents");
    }
    DataDirectory(const DataDirectory&) = delete;
    DataDirectory& operator=(const DataDirectory&) = delete;
    ~DataDirectory() { std::filesystem::remove_all(path_); }
    const std::string& path() const { return path_; }

  private:
    std::string path_;
};

// A whole engine with a fake warden, connected.
class Bench {
  public:
    PoolConfig pool{.target = 0};  // before start()
    Task<void> start() {
        warden_ = FakeWarden::start(data_.path());
        engine_ = *Engine::create(data_.path(), {.life = {.pool = pool}});
        engine_->start();
        while (!engine_->warden().built_in_template("base"))
            co_await sleep_for(std::chrono::milliseconds(1));
    }
    Task<void> stop() {
        co_await engine_->shut_down();
        for (const auto& engine : former_) co_await engine->shut_down();
        warden_->stop();
        co_await sleep_for(std::chrono::milliseconds(5));
    }

    // A new server takes over, as after kill -9 of the first: of that nothing more is heard.
    enum class Reboot { No, Yes };
    Task<void> restart(Reboot reboot = Reboot::No) {
        engine_->warden().stop();
        DataDirectory& next = later_.emplace_back();
        std::filesystem::remove_all(next.path() + "/run");
        std::filesystem::create_directory_symlink(data_.path() + "/run", next.path() + "/run");
        std::filesystem::copy(data() + "/state", next.path() + "/state",
                              std::filesystem::copy_options::recursive);
        if (reboot == Reboot::Yes) std::ofstream(next.path() + "/state/boot_id") << "another boot";
        former_.push_back(std::move(engine_));
        now_ = next.path();
        engine_ = *Engine::create(now_, {.life = {.pool = pool}});
        engine_->start();
        co_await engine_->recovered();
    }

    Engine& engine() { return *engine_; }
    const std::shared_ptr<FakeWarden>& warden() { return warden_; }
    FakeAgent& agent_of(const Sandbox& sandbox) { return *warden_->agents.at(sandbox.id()); }
    const std::string& project() { return engine_->local_project(); }
    const std::string& data() { return now_; }

    Task<std::shared_ptr<Sandbox>> sandbox(SandboxSpec spec = {}) {
        auto made = co_await engine_->sandboxes().create(project(), std::move(spec));
        EXPECT_TRUE(made) << made.error().message;
        co_return *made;
    }
    std::shared_ptr<Run> queue(const std::shared_ptr<Sandbox>& sandbox, std::string code) {
        RunSpec spec;
        spec.code = std::move(code);
        return queue(sandbox, std::move(spec));
    }
    std::shared_ptr<Run> queue(const std::shared_ptr<Sandbox>& sandbox, RunSpec spec) {
        auto run = engine_->runs().start(sandbox, std::move(spec));
        EXPECT_TRUE(run) << run.error().message;
        return *run;
    }
    static Task<void> end_of(std::shared_ptr<Run> run) {
        while (!run->ended()) co_await run->end_signal().wait();
    }
    static Task<void> start_of(std::shared_ptr<Run> run) {
        while (run->state() == RunState::Queued) co_await run->log()->changed().wait();
    }

  private:
    DataDirectory data_;
    std::list<DataDirectory> later_;
    std::string now_ = data_.path();
    std::shared_ptr<FakeWarden> warden_;
    std::vector<std::shared_ptr<Engine>> former_;
    std::shared_ptr<Engine> engine_;
};

}  // namespace cloister::engine
