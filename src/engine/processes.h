// Processes of a live sandbox: programs that clients start in it, with pipes or a terminal. All
// that is known about them lies with the sandbox's agent, so they outlive any server.
//
//     const auto process = co_await start_process(sandbox, std::move(spec));
//     auto stream = co_await ProcessStream::open(sandbox, id, {.after = 0});
//     while (…) { auto items = co_await (*stream)->next(heartbeat); … }
//
// Threading: the loop's thread.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/process_limits.h"
#include "base/result.h"
#include "engine/agent.h"
#include "engine/run.h"
#include "engine/sandbox.h"

namespace cloister::engine {

struct TerminalSize {
    int64_t cols = 80;
    int64_t rows = 24;
};

// What to start. Every field is within its limits (ops checks).
struct ProcessSpec {
    std::vector<std::string> argv;
    StringMap env;
    std::optional<std::string> cwd;
    std::string user = "user";
    StdinMode stdin_mode = StdinMode::None;
    std::string stdin_text;
    std::optional<std::string> stdin_path;
    int64_t timeout_ms = 0;  // 0: none
    std::optional<TerminalSize> terminal;
    std::string tag;
};

// A process as answers show it (`Process` in contract/openapi.yaml). Errors of these: the agent's.
Task<Result<json::object>> start_process(std::shared_ptr<Sandbox> sandbox, ProcessSpec spec);
Task<Result<json::array>> list_processes(std::shared_ptr<Sandbox> sandbox);
Task<Result<json::object>> get_process(std::shared_ptr<Sandbox> sandbox, std::string id);
// SIGKILL goes to all that descends from it, another signal to its process group.
Task<Result<void>> signal_process(std::shared_ptr<Sandbox> sandbox, std::string id,
                                  std::string signal);
Task<Result<void>> resize_terminal(std::shared_ptr<Sandbox> sandbox, std::string id,
                                   TerminalSize size);
// Kills it if it runs, and forgets it and what it wrote.
Task<Result<void>> remove_process(std::shared_ptr<Sandbox> sandbox, std::string id);
// Answers when the sandbox has taken all of it.
Task<Result<void>> write_process_stdin(std::shared_ptr<Sandbox> sandbox, std::string id,
                                       std::string bytes, StdinEnd end);

// A way to the stdin of one process that stays open: for a terminal's keys.
class ProcessInput {
  public:
    static Task<Result<std::shared_ptr<ProcessInput>>> open(std::shared_ptr<Sandbox> sandbox,
                                                            std::string id);
    Task<Result<void>> write(std::string bytes);
    void close() { agent_.close(); }

  private:
    explicit ProcessInput(AgentConnection agent) : agent_(std::move(agent)) {}
    AgentConnection agent_;
};

struct ProcessItem {
    enum class Kind { Started, Stdout, Stderr, Dropped, Ended } kind = Kind::Stdout;
    uint64_t end = 0;      // bytes of output up to here: where a reader that has this goes on
    std::string bytes;     // of output
    uint64_t dropped = 0;  // bytes that are not kept any more
    json::object process;  // of Started and Ended
};

// What one process writes, from any byte on, until its end.
class ProcessStream : public std::enable_shared_from_this<ProcessStream> {
  public:
    enum class Screen { No, Yes };
    struct From {
        uint64_t after = 0;
        Screen screen = Screen::No;  // Yes: from where its terminal's screen can be shown again
    };
    static Task<Result<std::shared_ptr<ProcessStream>>> open(std::shared_ptr<Sandbox> sandbox,
                                                             std::string id, From from);
    ~ProcessStream() = default;

    // The next items, Started first and Ended last; none if `most` passed, or after close().
    Task<std::vector<ProcessItem>> next(std::chrono::milliseconds most);
    bool closed() const { return closed_; }
    // Whether the terminal shows its alternate screen, as full-screen programs use it.
    bool alternate() const { return alternate_; }
    void close();

  private:
    ProcessStream(std::shared_ptr<Sandbox> sandbox, std::string id, AgentConnection agent);
    static Task<void> read_on(std::shared_ptr<ProcessStream> self);
    Task<Result<void>> read_one();
    void take(const json::object& event);
    void push(ProcessItem item);
    Task<void> end_lost();

    const std::shared_ptr<Sandbox> sandbox_;
    const Sandbox::Use use_;
    const std::string id_;
    AgentConnection agent_;
    std::vector<ProcessItem> items_;
    size_t waiting_ = 0;  // bytes of them
    uint64_t offset_ = 0;
    json::object process_;
    bool alternate_ = false;
    bool ended_ = false;
    bool closed_ = false;
    Signal changed_;
};

}  // namespace cloister::engine
