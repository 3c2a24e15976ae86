// cloister run: a program in a fresh sandbox, its output live, the sandbox gone at the end.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <filesystem>
#include <memory>
#include <thread>

#include "base/limits.h"
#include "base/time.h"
#include "base/utf8.h"
#include "programs/cli/api.h"
#include "programs/cli/arguments.h"
#include "programs/cli/auto_start.h"
#include "programs/cli/background.h"
#include "programs/cli/command.h"
#include "programs/cli/context.h"
#include "programs/cli/exit_code.h"
#include "programs/cli/files.h"
#include "programs/cli/run_view.h"
#include "programs/cli/settings.h"
#include "programs/cli/terminal.h"
#include "wire/languages.h"
#include "wire/templates.h"

namespace cloister::cli {
namespace {

// A sandbox whose CLI was killed goes by itself.
constexpr int64_t kIdleSeconds = 300;
// How long a service that went away may take to be back and say how the run ended.
constexpr int64_t kComeBackMs = 5'000;
constexpr std::chrono::milliseconds kComeBackPause{250};

struct RunOptions {
    Place place;
    std::string language, timeout, cpu_time, output_max, out, template_name, memory, context;
    int64_t cpu = 0, pids = 0;
    std::vector<std::string> env, files, allow;
    std::string net;
    bool json = false, quiet = false, auto_start = false;
};

// What the options say, checked, before anything is started.
struct RunPlan {
    json::object sandbox, run;
    std::string script;                  // uploaded under this name, or empty
    std::string name;                    // of the directory below cloister-out
    std::optional<ContextName> context;  // where it runs; none: in a sandbox of its own
    std::vector<FileArgument> files;
    bool sends_stdin = false;
};

void add_options(CLI::App& app, RunOptions& options) {
    CLI::Option* language =
        app.add_option("--language", options.language,
                       fmt::format("{} (default: as the file's name ends)", language_names()));
    app.add_option("--timeout", options.timeout, "seconds, or 500ms, 2s, 5m (default 300)");
    app.add_option("--cpu-time", options.cpu_time, "CPU time, as --timeout (default: no limit)");
    app.add_option("--pids", options.pids, "processes and threads (default 512)")
        ->check(CLI::Range(limits::kRunPidsMin, limits::kSandboxPidsDefault));
    app.add_option("--output-max", options.output_max, "bytes, or 64K, 10M (default 256M)");
    app.add_option("--env", options.env, "NAME=value, may be repeated")->expected(1)->take_all();
    app.add_option("--file", options.files, "PATH[:DEST] put beside the script, may be repeated")
        ->expected(1)
        ->take_all();
    app.add_option("--out", options.out, "directory (or file) for the files that the run makes");
    CLI::Option* image =
        app.add_option("--template", options.template_name,
                       "root filesystem (default: the first one that has the language)");
    CLI::Option* cpu = app.add_option("--cpu", options.cpu, "CPUs (default 2)")
                           ->check(CLI::Range(1, limits::kSandboxCpuMax));
    CLI::Option* memory =
        app.add_option("--memory", options.memory, "megabytes, or 2G (default 2048)");
    app.add_option("--context", options.context,
                   "SANDBOX/CONTEXT: run there, as `cloister context create` printed it")
        ->excludes(language, image, cpu, memory);
    app.add_option("--allow", options.allow,
                   "name, *.name, address or network that it may reach, may be repeated")
        ->expected(1)
        ->take_all();
    app.add_option("--net", options.net, "disabled (default) or open: what it may reach")
        ->check(CLI::IsMember({"disabled", "open"}));
    app.add_flag("--json", options.json, "events as JSON, one a line");
    app.add_flag("--quiet,-q", options.quiet, "only what the program writes");
    app.add_flag("--auto-start", options.auto_start, "start the service if none answers");
    add_place_options(app, options.place);
    add_service_options(app, options.place);
}

bool takes_value(const CLI::App& app, const std::string& word) {
    const CLI::Option* option = app.get_option_no_throw(word);
    return option != nullptr && option->get_items_expected_max() > 0;
}

// The one that was asked for, or else that of the file, or else Python.
Result<std::string> language_of(const RunOptions& options, const ProgramWords& program) {
    if (options.language.empty()) {
        const bool is_file = program.source == ProgramWords::Source::File;
        const auto found = is_file ? find_language_of(program.program) : std::nullopt;
        return std::string(found.value_or("python"));
    }
    if (is_language(options.language) || find_kernelspec(options.language)) return options.language;
    return make_error(ErrorKind::InvalidArgument, fmt::format("there is no language `{}`, only {}",
                                                              options.language, language_names()));
}

Result<std::string> read_code(const ProgramWords& program) {
    if (program.source == ProgramWords::Source::Code) return program.program;
    if (program.source == ProgramWords::Source::Stdin)
        return os::read_file("/dev/stdin", limits::kCodeMax);
    TRY(FileSource::open(
        program.program));  // says what is wrong with a path in the words of a person
    return os::read_file(program.program, limits::kCodeMax);
}

Result<json::object> sandbox_body(const RunOptions& options, const std::string& language) {
    json::object body{{"idle_timeout_seconds", kIdleSeconds}};
    body["template"] = options.template_name.empty() ? find_template_of(language).value_or("base")
                                                     : options.template_name;
    if (options.cpu > 0) body["cpu"] = options.cpu;
    if (!options.memory.empty()) body["memory_mb"] = TRY(parse_megabytes(options.memory));
    if (!options.net.empty() && !options.allow.empty()) {
        return make_error(ErrorKind::InvalidArgument,
                          "give either --net or --allow: what is allowed is all that is reached");
    }
    if (!options.net.empty()) body["network"] = {{"mode", options.net}};
    if (!options.allow.empty()) {
        body["network"] = {{"mode", "filtered"},
                           {"allow_out", json::array(options.allow.begin(), options.allow.end())}};
    }
    return body;
}

Result<void> add_limits(json::object& run, const RunOptions& options) {
    if (!options.timeout.empty()) run["timeout_ms"] = TRY(parse_duration_ms(options.timeout));
    if (!options.cpu_time.empty()) run["cpu_time_ms"] = TRY(parse_duration_ms(options.cpu_time));
    if (!options.output_max.empty()) run["output_max_bytes"] = TRY(parse_bytes(options.output_max));
    if (options.pids > 0) run["pids"] = options.pids;
    return {};
}

// argv[0] and the name in tracebacks are what `python3 FILE` run in /home/user would show.
void name_program(RunPlan& plan, const ProgramWords& program) {
    json::array argv;
    if (program.source == ProgramWords::Source::File) {
        plan.script = std::filesystem::path(program.program).filename().string();
        plan.name = std::filesystem::path(program.program).stem().string();
        plan.run["filename"] = "/home/user/" + plan.script;
        argv.emplace_back(plan.script);
    } else {
        const bool is_code = program.source == ProgramWords::Source::Code;
        plan.name = is_code ? "code" : "stdin";
        argv.emplace_back(is_code ? "-c" : "-");
    }
    for (const std::string& argument : program.arguments) argv.emplace_back(argument);
    plan.run["argv"] = std::move(argv);
}

Result<RunPlan> plan_run(const RunOptions& options, const ProgramWords& program) {
    RunPlan plan;
    const std::string language = TRY(language_of(options, program));
    plan.sandbox = TRY(sandbox_body(options, language));
    const std::string code = TRY(read_code(program));
    if (!is_utf8(code))
        return make_error(ErrorKind::InvalidArgument, "the code is not UTF-8: save it as UTF-8");
    plan.run = json::object{{"code", code}, {"on_disconnect", "interrupt"}};
    if (options.context.empty()) {
        plan.run["language"] = language;
    } else {
        plan.context = TRY(parse_context_name(options.context));
        plan.run["context_id"] = plan.context->context;
    }
    name_program(plan, program);
    TRY_OK(add_limits(plan.run, options));
    json::object env;
    for (const std::string& word : options.env) {
        const auto [name, value] = TRY(parse_env(word));
        env[name] = value;
    }
    if (!env.empty()) plan.run["env"] = std::move(env);
    for (const std::string& word : options.files) {
        plan.files.push_back(TRY(parse_file_argument(word)));
        TRY(FileSource::open(
            plan.files.back().local));  // a missing file is known before anything is made
    }
    plan.sends_stdin = program.source != ProgramWords::Source::Stdin && stdin_is_for_run();
    if (plan.sends_stdin) plan.run["stdin_open"] = true;
    return plan;
}

Result<void> upload(const Api& api, const std::string& sandbox, const std::string& local,
                    const std::string& remote) {
    const Progress progress("uploading " + printable(local));
    auto source = std::make_shared<FileSource>(TRY(FileSource::open(local)));
    TRY(api.upload(fmt::format("/v1/sandboxes/{}/files?path={}", sandbox, percent_encode(remote)),
                   [source] { return source->next(); }));
    return {};
}

Result<void> upload_all(const Api& api, const std::string& sandbox, const RunPlan& plan,
                        const std::string& script) {
    if (!plan.script.empty()) TRY_OK(upload(api, sandbox, script, plan.script));
    for (const FileArgument& file : plan.files)
        TRY_OK(upload(api, sandbox, file.local, file.remote));
    return {};
}

// Deletes its sandbox at the end, however that comes, unless it is another's.
class Sandbox {
  public:
    static Result<Sandbox> open(const Api& api, const RunPlan& plan) {
        if (!plan.context) return create(api, plan.sandbox);
        Sandbox sandbox(api, plan.context->sandbox);
        sandbox.keeps_ = true;
        return sandbox;
    }
    static Result<Sandbox> create(const Api& api, const json::object& body) {
        const Progress progress("making a sandbox");
        const json::object made = TRY(api.post("/v1/sandboxes", body));
        const json::value* id = made.if_contains("id");
        if (id == nullptr || !id->is_string())
            return make_error(ErrorKind::Internal, "the service sent no sandbox id");
        return Sandbox(api, std::string(id->as_string()));
    }
    Sandbox(Sandbox&& other) noexcept
        : api_(std::move(other.api_)), id_(std::exchange(other.id_, {})), keeps_(other.keeps_) {}
    Sandbox& operator=(Sandbox&&) = delete;
    ~Sandbox() {
        if (!id_.empty() && !keeps_)
            (void)api_.remove("/v1/sandboxes/" + id_);  // if it fails, its idle limit removes it
    }
    const std::string& id() const { return id_; }

  private:
    Sandbox(const Api& api, std::string id) : api_(api), id_(std::move(id)) {}
    Api api_;
    std::string id_;
    bool keeps_ = false;
};

// The stream broke off before `ended`. A service that comes back knows how the run ended.
Result<Ending> ask_how_it_ended(const Api& api, const std::string& run_id, const Error& broken) {
    const int64_t give_up = steady_ms() + kComeBackMs;
    say("the connection to the service broke; asking how the run ended");
    while (!run_id.empty() && steady_ms() < give_up) {
        auto run = api.get("/v1/runs/" + run_id);
        if (run && run->contains("end_reason")) return ending_of(*run);
        if (!run && run.error().kind != ErrorKind::FailedPrecondition) break;
        std::this_thread::sleep_for(kComeBackPause);
    }
    return broken;
}

Result<void> follow_run(const Api& api, const std::string& sandbox, const RunPlan& plan,
                        RunView& view, Interrupts& interrupts) {
    SseParser parser;
    std::optional<StdinPump> pump;
    const auto take = [&](std::string_view piece) -> Result<void> {
        for (const SseEvent& event : TRY(parser.feed(piece))) {
            const bool started_before = !view.run_id().empty();
            TRY_OK(view.show(event));
            if (started_before || view.run_id().empty()) continue;
            interrupts.set_run(view.run_id());
            if (plan.sends_stdin) pump.emplace(TRY(StdinPump::start(api, view.run_id())));
        }
        return {};
    };
    auto streamed =
        api.post_for_events(fmt::format("/v1/sandboxes/{}/runs", sandbox), plan.run, take);
    if (view.ending()) return {};
    if (streamed)
        streamed =
            make_error(ErrorKind::FailedPrecondition, "the run's events ended without its end");
    if (streamed.error().kind != ErrorKind::FailedPrecondition || interrupts.exit_code() != 0)
        return streamed;
    view.set_ending(TRY(ask_how_it_ended(api, view.run_id(), streamed.error())));
    return {};
}

// Whether --out names the one file itself rather than a directory for it.
bool names_a_file(const std::string& out, size_t files) {
    return files == 1 && !out.ends_with('/') && !is_directory(out) &&
           std::filesystem::path(out).has_extension();
}

Result<void> fetch_files(const Api& api, const Ending& ending, const RunOptions& options) {
    for (const MadeFile& made : ending.files) {
        const std::string below = path_below_home(made.path);
        if (below.empty() || made.url.empty()) continue;
        const bool alone = names_a_file(options.out, ending.files.size());
        const std::string target =
            alone ? options.out : (std::filesystem::path(options.out) / below).string();
        const Progress progress("fetching " + printable(below));
        const os::Fd file = TRY(create_file(target));
        TRY_OK(api.download(made.url,
                            [&](std::string_view piece) { return os::write_all(file, piece); }));
        if (!options.quiet)
            say(fmt::format("saved {} ({})", printable(target), size_text(made.size)));
    }
    if (ending.files_left_out > 0) {
        say(fmt::format(
            "{} more files were made and NOT fetched: only {} are listed; pack them into "
            "one file in your code (shutil.make_archive)",
            ending.files_left_out, ending.files.size()));
    }
    return {};
}

Result<int> execute(const Api& api, const RunOptions& options, const RunPlan& plan,
                    const ProgramWords& program) {
    Interrupts interrupts(api);
    TRY_OK(interrupts.start());
    if (plan.context) interrupts.keep_sandbox();
    const Sandbox sandbox = TRY(Sandbox::open(api, plan));
    if (!plan.context) interrupts.set_sandbox(sandbox.id());
    RunView view(options.json ? Style::Json : Style::Person,
                 options.quiet || options.json ? Summary::Quiet : Summary::Shown, plan.name);
    const bool has_network = !options.allow.empty() || options.net == "open";
    if (!has_network) view.without_network();
    Result<void> followed = upload_all(api, sandbox.id(), plan, program.program);
    if (followed) followed = follow_run(api, sandbox.id(), plan, view, interrupts);
    if (const int code = interrupts.exit_code(); code != 0) return code;
    // Whoever closed our output (`… | head`) wants to hear nothing more.
    if (!followed && followed.error().kind == ErrorKind::Cancelled)
        return exit_code_of(ErrorKind::Cancelled);
    TRY_OK(followed);
    if (options.out.empty()) view.list_files();
    if (!options.out.empty()) TRY_OK(fetch_files(api, *view.ending(), options));
    view.summarize();
    return exit_code_of(view.ending()->reason, view.ending()->exit_code);
}

Result<int> run(const RunOptions& options, const ProgramWords& program) {
    const RunPlan plan = TRY(plan_run(options, program));
    const ServiceAddress address = TRY(options.auto_start ? find_or_start_service(options.place)
                                                          : find_service(options.place));
    const Api api = TRY(Api::create(address));
    return execute(api, options, plan, program);
}

}  // namespace

int run_command(const Words& words) {
    RunOptions options;
    CLI::App app(
        "Runs a program in a fresh sandbox:\n  cloister run [OPTIONS] FILE [ARGS…]\n"
        "  cloister run [OPTIONS] -c CODE [ARGS…]\n  cloister run [OPTIONS] -      (code from "
        "stdin)",
        "cloister run");
    add_options(app, options);
    const auto program =
        split_program(words, [&](const std::string& word) { return takes_value(app, word); });
    if (const auto code = parse_words(app, program ? program->options : words)) return *code;
    if (!program) return say_error(program.error());
    const Result<int> code = run(options, *program);
    return code ? *code : say_error(code.error());
}

}  // namespace cloister::cli
