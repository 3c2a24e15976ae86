// cloister exec, cloister shell: a program in a sandbox that lives already.
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <optional>

#include "base/limits.h"
#include "base/utf8.h"
#include "os/raw_terminal.h"
#include "programs/cli/api.h"
#include "programs/cli/arguments.h"
#include "programs/cli/background.h"
#include "programs/cli/command.h"
#include "programs/cli/exit_code.h"
#include "programs/cli/process_link.h"
#include "programs/cli/settings.h"
#include "programs/cli/terminal.h"
#include "wire/run_end.h"

namespace cloister::cli {
namespace {

struct ExecOptions {
    Place place;
    std::string cwd, user, timeout, attach;
    std::vector<std::string> env;
    bool terminal = false, interactive = false, detach = false, json = false;
};

void add_options(CLI::App& app, ExecOptions& options) {
    app.add_option("--cwd", options.cwd, "where it runs (default: the user's home)");
    app.add_option("--user", options.user, "user or root (default user)");
    app.add_option("--timeout", options.timeout, "seconds, or 500ms, 2s, 5m (default: none)");
    app.add_option("--env", options.env, "NAME=value, may be repeated")->expected(1)->take_all();
    add_place_options(app, options.place);
    add_service_options(app, options.place);
}

bool takes_value(const CLI::App& app, const std::string& word) {
    const CLI::Option* option = app.get_option_no_throw(word);
    return option != nullptr && option->get_items_expected_max() > 0;
}

// `[OPTIONS] ID [--] [PROGRAM WORDS…]`: what is behind the id belongs to the program.
struct SplitWords {
    Words options;
    std::string id;
    Words program;
};

SplitWords split(const CLI::App& app, const Words& words) {
    SplitWords out;
    size_t at = 0;
    while (at < words.size() && words[at].starts_with('-')) {
        const bool two = takes_value(app, words[at]) && at + 1 < words.size();
        for (size_t i = 0; i < (two ? 2U : 1U); ++i) out.options.push_back(words[at++]);
    }
    if (at < words.size()) out.id = words[at++];
    if (at < words.size() && words[at] == "--") ++at;
    out.program.assign(words.begin() + static_cast<std::ptrdiff_t>(at), words.end());
    return out;
}

std::string processes_of(const std::string& sandbox) {
    return fmt::format("/v1/sandboxes/{}/processes", percent_encode(sandbox));
}

Result<json::object> request_of(const ExecOptions& options, const Words& program) {
    json::object body{{"argv", json::array(program.begin(), program.end())}};
    if (!options.cwd.empty()) body["cwd"] = options.cwd;
    if (!options.user.empty()) body["user"] = options.user;
    if (!options.timeout.empty()) body["timeout_ms"] = TRY(parse_duration_ms(options.timeout));
    json::object env;
    if (options.terminal) {
        if (const std::string term = environment("TERM"); !term.empty()) env["TERM"] = term;
        if (const std::string color = environment("COLORTERM"); !color.empty()) {
            env["COLORTERM"] = color;
        }
        const os::WindowSize size = os::window_size().value_or(os::WindowSize{});
        body["pty"] = json::object{{"cols", size.cols}, {"rows", size.rows}};
    }
    for (const std::string& text : options.env) {
        auto [name, value] = TRY(parse_env(text));
        env[name] = value;
    }
    if (!env.empty()) body["env"] = std::move(env);
    return body;
}

std::string id_in(const json::object& process) {
    const json::value* id = process.if_contains("id");
    return id != nullptr && id->is_string() ? std::string(id->as_string()) : std::string();
}

int exit_code_in(const json::object& process) {
    const json::value* reason = process.if_contains("end_reason");
    const json::value* code = process.if_contains("exit_code");
    std::optional<int> number;
    if (code != nullptr && code->is_int64()) number = static_cast<int>(code->as_int64());
    const auto known = reason != nullptr && reason->is_string()
                           ? end_reason_from(std::string_view(reason->as_string()))
                           : std::nullopt;
    return exit_code_of(known.value_or(EndReason::SandboxLost), number);
}

// An end that the program did not choose is said.
void say_end(const json::object& process) {
    const json::value* reason = process.if_contains("end_reason");
    const json::value* message = process.if_contains("message");
    if (reason == nullptr || message == nullptr || !message->is_string()) return;
    const bool own = *reason == "ok" || *reason == "error";
    if (!own) say(printable(std::string(message->as_string())));
}

Result<int> follow(const Api& api, const std::string& process, const LinkOptions& link_options) {
    // Before the terminal is raw: what fails so far is said as usual.
    ProcessLink link = TRY(ProcessLink::open(api, process, link_options));
    std::optional<os::RawTerminal> raw;
    const bool terminal = link_options.terminal == LinkOptions::Terminal::Yes;
    if (terminal && ::isatty(STDIN_FILENO) == 1) raw.emplace(TRY(os::RawTerminal::enter()));
    const Result<json::object> ended = link.follow();
    raw.reset();
    if (!ended && ended.error().kind == ErrorKind::Cancelled) {
        return exit_code_of(ErrorKind::Cancelled);
    }
    if (!ended) return ended.error();
    say_end(*ended);
    return exit_code_in(*ended);
}

Result<int> run_to_json(const Api& api, const std::string& target, json::object body) {
    body["wait"] = true;
    if (stdin_is_for_run()) {
        std::string text = TRY(os::read_file("/dev/stdin", limits::kStdinCallMax));
        if (!is_utf8(text)) {
            return make_error(ErrorKind::InvalidArgument, "with --json stdin must be UTF-8");
        }
        body["stdin"] = std::move(text);
    }
    const json::object process = TRY(api.post(target, body));
    print(json::serialize(process));
    return exit_code_in(process);
}

Result<int> execute(const ExecOptions& options, const std::string& sandbox, const Words& program) {
    const ServiceAddress address = TRY(find_service(options.place));
    const Api api = TRY(Api::create(address));
    const std::string target = processes_of(sandbox);
    json::object body = TRY(request_of(options, program));
    if (options.json && !options.detach) return run_to_json(api, target, std::move(body));
    const bool takes_stdin = options.terminal || options.interactive || stdin_is_for_run();
    if (takes_stdin && !options.terminal && !options.detach) body["stdin_open"] = true;
    const json::object process = TRY(api.post(target, body));
    if (options.detach) {
        print(options.json ? json::serialize(process) : id_in(process));
        return 0;
    }
    return follow(
        api, target + "/" + id_in(process),
        {.stdin_state = takes_stdin ? LinkOptions::Stdin::Open : LinkOptions::Stdin::Closed,
         .terminal = options.terminal ? LinkOptions::Terminal::Yes : LinkOptions::Terminal::No});
}

Result<int> attach(const ExecOptions& options, const std::string& sandbox) {
    const ServiceAddress address = TRY(find_service(options.place));
    const Api api = TRY(Api::create(address));
    const std::string target = processes_of(sandbox) + "/" + percent_encode(options.attach);
    const json::object process = TRY(api.get(target));
    const bool terminal = process.contains("pty");
    const json::value* open = process.if_contains("stdin_open");
    const bool takes_stdin = open != nullptr && open->is_bool() && open->as_bool() &&
                             (terminal || options.interactive || stdin_is_for_run());
    return follow(
        api, target,
        {.stdin_state = takes_stdin ? LinkOptions::Stdin::Open : LinkOptions::Stdin::Closed,
         .terminal = terminal ? LinkOptions::Terminal::Yes : LinkOptions::Terminal::No,
         .replay = terminal ? LinkOptions::Replay::Screen : LinkOptions::Replay::FromStart});
}

int answer(const Result<int>& code) {
    return code ? *code : say_error(code.error());
}

int refuse(std::string_view what) {
    say(what);
    return kWrongUsage;
}

}  // namespace

int exec_command(const Words& words) {
    ExecOptions options;
    CLI::App app(
        "Runs a program in a sandbox: its output is ours, and so is its exit code\n"
        "  cloister exec [OPTIONS] SANDBOX [--] PROGRAM [WORDS…]\n"
        "  cloister exec --attach PROCESS SANDBOX",
        "cloister exec");
    add_options(app, options);
    app.add_flag("-t,--tty", options.terminal, "with a terminal");
    app.add_flag("-i,--stdin", options.interactive,
                 "our stdin is its stdin, also if it is a terminal (a pipe or file is anyway)");
    app.add_flag("-d,--detach", options.detach, "print its id and leave it alone");
    app.add_option("--attach", options.attach, "one that runs or has ended: its output, all of it");
    app.add_flag("--json", options.json,
                 "its record as JSON: with -d at once, else at its end with its output");
    const SplitWords parts = split(app, words);
    if (const auto code = parse_words(app, parts.options)) return *code;
    if (parts.id.empty()) return refuse("say in which sandbox; `cloister exec --help`");
    if (!options.attach.empty()) {
        if (!parts.program.empty()) return refuse("--attach takes no program");
        return answer(attach(options, parts.id));
    }
    if (parts.program.empty()) return refuse("say which program; `cloister exec --help`");
    if (options.terminal && options.json) return refuse("-t and --json do not go together");
    return answer(execute(options, parts.id, parts.program));
}

int shell_command(const Words& words) {
    ExecOptions options;
    options.terminal = true;
    CLI::App app(
        "An interactive shell in a sandbox\n  cloister shell [OPTIONS] SANDBOX\n"
        "  cloister shell --attach PROCESS SANDBOX",
        "cloister shell");
    add_options(app, options);
    app.add_option("--attach", options.attach, "a terminal whose connection was lost");
    const SplitWords parts = split(app, words);
    if (const auto code = parse_words(app, parts.options)) return *code;
    if (parts.id.empty()) return refuse("say in which sandbox; `cloister shell --help`");
    if (!parts.program.empty()) return refuse("a shell takes no program; see `cloister exec -t`");
    if (::isatty(STDIN_FILENO) != 1) {
        return refuse("standard input is no terminal: see `cloister exec`");
    }
    if (!options.attach.empty()) return answer(attach(options, parts.id));
    return answer(execute(options, parts.id, {"/bin/bash", "-l"}));
}

}  // namespace cloister::cli
