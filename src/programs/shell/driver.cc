#include "programs/shell/driver.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstring>

#include "base/time.h"
#include "base/utf8.h"
#include "programs/shell/bash.h"
#include "programs/shell/leftovers.h"
#include "programs/shell/program_file.h"
#include "programs/shell/syntax.h"

namespace cloister::shell {
namespace {

// How long an interrupted run may take to end by itself, and then the pause between two pushes. The
// agent kills all after limits::kInterruptGraceMs.
constexpr int64_t kPatienceMs = 200;
constexpr int64_t kPushEveryMs = 60;
// How long a run that has ended waits for what it left behind with its output.
constexpr int64_t kDrainMs = 60;
// The status by which bash says, among other things, that it cannot parse the code.
constexpr int kBadUsage = 2;
constexpr int64_t kForEver = INT64_MAX;

// The code of a program's run. Its words: the file, and what the program gets.
constexpr std::string_view kProgramCode = R"("$BASH" -- "$@")";

json::array array_of(const std::vector<std::string>& texts) {
    json::array out;
    for (const std::string& text : texts) out.emplace_back(to_utf8(text));
    return out;
}

std::string source_line(std::string_view code, int64_t line) {
    for (; line > 1 && !code.empty(); --line) {
        code.remove_prefix(std::min(code.size(), code.find('\n') + 1));
    }
    return std::string(code.substr(0, code.find('\n')));
}

// Where a program's file may lie: as the caller names it to the program, and as `filename` says.
std::vector<std::string> names_of_program(const Request& request) {
    std::vector<std::string> names;
    if (request.argv && !request.argv->empty()) names.push_back(request.argv->front());
    names.push_back(*request.filename);
    return names;
}

// `program`: the file to execute, or empty for code of the shell itself.
Order order_for(const Request& request, int64_t number, const std::string& program) {
    Order order{.number = number,
                .cwd = request.cwd,
                .code = request.code,
                .args = request.argv,
                .env = request.env};
    // argv[0] is the program's name, which code of the shell does not have.
    if (order.args && !order.args->empty()) order.args->erase(order.args->begin());
    if (program.empty()) return order;
    order.code = kProgramCode;
    if (!order.args) order.args.emplace();
    order.args->insert(order.args->begin(), program);
    return order;
}

}  // namespace

Driver::Driver(os::Fd agent, std::string bash)
    : bash_(std::move(bash)), channel_(std::move(agent)) {}

Result<std::unique_ptr<Driver>> Driver::create(os::Fd agent, const std::string& scripts) {
    std::unique_ptr<Driver> driver(new Driver(std::move(agent), TRY(find_bash())));
    TRY_OK(driver->open(scripts));
    return driver;
}

Result<void> Driver::open(const std::string& scripts) {
    std::signal(SIGPIPE, SIG_IGN);  // an agent that is gone is an error like another
    shell_ = TRY(Shell::start(bash_, scripts));
    signals_ = TRY(os::make_signal_fd({SIGINT, SIGCHLD}));
    null_ = TRY(os::open_file("/dev/null", O_RDONLY));
    return {};
}

Result<std::optional<os::ChildEnd>> Driver::serve() {
    TRY_OK(
        channel_.send("kernel_info_reply", {{"language", "bash"}, {"version", shell_->version()}}));
    while (!shell_end_) {
        if (wait(During::Rest, kForEver) != Event::Agent) continue;
        std::optional<Message> message = TRY(channel_.receive());
        if (!message) return std::optional<os::ChildEnd>();
        if (message->type == "execute_request") TRY_OK(run(std::move(*message)));
    }
    return shell_end_;
}

// --- Waiting ---

Driver::Event Driver::wait(During what, int64_t until_ms) {
    const int agent = what == During::Rest ? channel_.socket().get() : -1;
    std::array<pollfd, 3> watched{
        pollfd{.fd = agent, .events = POLLIN, .revents = 0},
        pollfd{.fd = shell_->answers().get(), .events = POLLIN, .revents = 0},
        pollfd{.fd = signals_.get(), .events = POLLIN, .revents = 0}};
    const int64_t rest = std::max<int64_t>(until_ms - steady_ms(), 0);
    const int timeout = until_ms == kForEver ? -1 : static_cast<int>(rest);
    if (::poll(watched.data(), watched.size(), timeout) <= 0) return Event::Nothing;
    bool interrupted = false;
    while (const int number = os::take_signal(signals_)) {
        if (number == SIGINT) interrupted = true;
        if (number == SIGCHLD) reap();
    }
    if (interrupted) return Event::Interrupt;
    if (watched[1].revents != 0) return Event::Answer;
    return watched[0].revents != 0 ? Event::Agent : Event::Nothing;
}

void Driver::reap() {
    while (const auto end = os::reap_one()) {
        if (end->pid == shell_->pid()) shell_end_ = end;
    }
}

std::optional<int> Driver::follow(const os::BirthMark& mark) {
    int64_t push_at = kForEver;
    for (;;) {
        const bool ended = shell_end_.has_value();  // before the look: it answers, then it ends
        if (const auto status = shell_->take_answer(count_)) return status;
        if (ended) return std::nullopt;
        const Event event = wait(During::Run, push_at);
        if (event == Event::Interrupt) push_at = std::min(push_at, steady_ms() + kPatienceMs);
        if (steady_ms() < push_at) continue;
        push_at = steady_ms() + kPushEveryMs;
        kill_started(shell_->pid(), mark);
        if (!shell_->is_changing()) ::kill(shell_->pid(), SIGINT);
    }
}

// --- One run ---

Result<void> Driver::run(Message message) {
    ++count_;
    Result<Request> request = request_of(std::move(message));
    if (request) return execute(*request);
    TRY_OK(report("InvalidRequest", request.error().message, {request.error().message}, 0));
    return reply(1);
}

Result<void> Driver::execute(const Request& request) {
    if (const auto why = enter_directory(request)) {
        TRY_OK(report("InvalidRequest", *why, {*why}, 0));
        return reply(1);
    }
    std::optional<ProgramFile> file;
    if (request.filename) {
        file.emplace(TRY(ProgramFile::find_or_make(names_of_program(request), request.code)));
    }
    take_stdin(request.stdin_fd.open() ? request.stdin_fd : null_);
    const os::BirthMark mark = os::mark_births();
    const ChildWatch children(shell_->pid());
    TRY_OK(shell_->begin(order_for(request, count_, file ? file->path() : "")));
    TRY_OK(channel_.send("status", {{"execution_state", "busy"}}));
    const std::optional<int> status = follow(mark);
    if (children.saw_any()) drain(shell_->pid(), mark, kDrainMs);
    take_stdin(null_);
    if (!status && shell_end_->signal != 0) return {};  // our own end will say so
    if (status == kBadUsage) TRY_OK(report_syntax(request.code));
    return reply(status ? *status : shell_end_->exit_code);
}

// The shell's directory becomes ours too, so that relative names mean the same here. Answers what
// is wrong with the one that the run asks for.
std::optional<std::string> Driver::enter_directory(const Request& request) {
    const std::string directory = request.cwd.empty() ? shell_->cwd() : request.cwd;
    if (::chdir(directory.c_str()) == 0 || request.cwd.empty()) return std::nullopt;
    return fmt::format("cannot enter the working directory {}: {}", directory,
                       std::strerror(errno));
}

void Driver::take_stdin(const os::Fd& fd) {
    ::dup2(fd.get(), 0);
}

// --- Messages ---

Result<void> Driver::report(std::string_view name, std::string_view value,
                            const std::vector<std::string>& traceback, int64_t line) {
    json::object content{
        {"ename", name}, {"evalue", to_utf8(value)}, {"traceback", array_of(traceback)}};
    if (line > 0) content["line"] = line;
    return channel_.send("error", std::move(content));
}

Result<void> Driver::report_syntax(std::string_view code) {
    const auto error = find_syntax_error(bash_, code);
    if (!error) return {};
    return report("SyntaxError", error->message,
                  {fmt::format("line {}: {}", error->line, source_line(code, error->line)),
                   "SyntaxError: " + error->message},
                  error->line);
}

Result<void> Driver::reply(int status) {
    // A program that fails does not say that the disk is full: the agent finds out.
    return channel_.send("execute_reply", {{"disk_error", status == 0 ? 0 : -1},
                                           {"status", status == 0 ? "ok" : "error"},
                                           {"execution_count", count_},
                                           {"exit_code", status},
                                           {"cwd", to_utf8(shell_->cwd())},
                                           {"state_lost", shell_end_.has_value()}});
}

}  // namespace cloister::shell
