#include "programs/cli/run_view.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <utility>

#include "os/fd.h"
#include "programs/cli/display.h"
#include "programs/cli/files.h"
#include "programs/cli/terminal.h"
#include "wire/base64.h"

namespace cloister::cli {
namespace {

// Bytes of the program, past stdio's buffers. A reader that has gone is Cancelled.
Result<void> write_through(int standard, std::string_view bytes) {
    os::Fd fd(standard);
    auto written = os::write_all(fd, bytes);
    (void)fd.release();  // it stays open
    if (!written && written.error().os_error == EPIPE) {
        return make_error(ErrorKind::Cancelled, "nobody reads the output any more");
    }
    return written;
}

std::string text_of(const json::object& object, std::string_view name) {
    const json::value* value = object.if_contains(name);
    return value != nullptr && value->is_string() ? std::string(value->as_string()) : std::string();
}

int64_t number_of(const json::object& object, std::string_view name) {
    const json::value* value = object.if_contains(name);
    boost::system::error_code failure;
    const int64_t number =
        value != nullptr && value->is_number() ? value->to_number<int64_t>(failure) : 0;
    return failure ? 0 : number;
}

const json::object& object_of(const json::object& object, std::string_view name) {
    static const json::object none;
    const json::value* value = object.if_contains(name);
    return value != nullptr && value->is_object() ? value->as_object() : none;
}

const json::array& array_of(const json::object& object, std::string_view name) {
    static const json::array none;
    const json::value* value = object.if_contains(name);
    return value != nullptr && value->is_array() ? value->as_array() : none;
}

MadeFile made_file_of(const json::value& entry) {
    MadeFile file;
    if (!entry.is_object()) return file;
    file.path = text_of(entry.as_object(), "path");
    file.url = text_of(entry.as_object(), "url");
    file.size = static_cast<uint64_t>(number_of(entry.as_object(), "size"));
    return file;
}

int64_t number_from(std::string_view text) {
    int64_t number = 0;
    (void)std::from_chars(text.data(), text.data() + text.size(),
                          number);  // 0 for what is no number
    return number;
}

// What the program wrote: `text`, unless that could not be exact.
std::string bytes_of(const json::object& data) {
    auto exact = base64_decode(text_of(data, "base64"));
    return exact && !exact->empty() ? std::move(*exact) : text_of(data, "text");
}

std::string with_newline(std::string text) {
    if (!text.ends_with('\n')) text += '\n';
    return text;
}

}  // namespace

Result<Ending> ending_of(const json::object& run) {
    const std::optional<EndReason> reason = end_reason_from(text_of(run, "end_reason"));
    if (!reason)
        return make_error(ErrorKind::Internal, "the service did not say how the run ended");
    const json::object& metrics = object_of(run, "metrics");
    Ending ending;
    ending.reason = *reason;
    const json::value* exit_code = run.if_contains("exit_code");
    if (exit_code != nullptr && exit_code->is_int64())
        ending.exit_code = static_cast<int>(exit_code->as_int64());
    ending.message = text_of(run, "message");
    ending.wall_ms = number_of(metrics, "wall_ms");
    ending.cpu_ms = number_of(metrics, "cpu_ms");
    ending.memory_peak_bytes = static_cast<uint64_t>(number_of(metrics, "memory_peak_bytes"));
    const json::object& fired = object_of(run, "limit");
    if (!fired.empty()) {
        ending.limit = {.name = text_of(fired, "name"),
                        .value = static_cast<uint64_t>(number_of(fired, "value"))};
    }
    for (const json::value& limit : array_of(run, "limits_hit")) {
        if (limit.is_string()) ending.limits_hit.emplace_back(limit.as_string());
    }
    for (const json::value& entry : array_of(run, "artifacts"))
        ending.files.push_back(made_file_of(entry));
    ending.files_left_out = static_cast<uint64_t>(number_of(run, "artifacts_left_out"));
    return ending;
}

Result<void> RunView::show(const SseEvent& event) {
    const json::object data = TRY(parse_object(event.data));
    if (event.type == "started") run_id_ = text_of(object_of(data, "run"), "id");
    if (event.type == "ended") ending_ = TRY(ending_of(data));
    if (style_ == Style::Person) return show_to_person(event, data);
    const json::object line{{"id", number_from(event.id)}, {"event", event.type}, {"data", data}};
    return write_through(STDOUT_FILENO, json::serialize(line) + "\n");
}

Result<void> RunView::show_to_person(const SseEvent& event, const json::object& data) {
    if (event.type == "stdout") return show_output(STDOUT_FILENO, bytes_of(data));
    if (event.type == "stderr") {
        const std::string bytes = bytes_of(data);
        network_hint_.take(bytes);
        return show_output(STDERR_FILENO, bytes);
    }
    end_line();
    if (event.type == "display" || event.type == "result" || event.type == "display_update")
        return show_display(data);
    if (event.type == "error") {
        has_error_ = true;
        network_hint_.take(text_of(data, "name") + ": " + text_of(data, "value"));
        return show_error(data);
    }
    if (event.type == "dropped") {
        say(fmt::format("{} of output were lost on the way",
                        size_text(static_cast<uint64_t>(number_of(data, "bytes")))));
    }
    return {};
}

Result<void> RunView::show_output(int standard, std::string_view bytes) {
    if (!bytes.empty() && ::isatty(standard) == 1) line_is_open_ = !bytes.ends_with('\n');
    return write_through(standard, bytes);
}

void RunView::end_line() {
    if (std::exchange(line_is_open_, false) && ::isatty(STDERR_FILENO) == 1)
        (void)write_through(STDERR_FILENO, "\n");  // if nobody reads, nobody misses it
}

Result<void> RunView::show_display(const json::object& event) {
    const Shown shown = choose_form(object_of(event, "data"));
    if (!shown.extension.empty()) return save_picture(event, shown.extension, shown.bytes);
    if (shown.text.empty()) return {};
    return write_through(STDOUT_FILENO, with_newline(shown.text));
}

Result<void> RunView::save_picture(const json::object& event, std::string_view extension,
                                   std::string_view bytes) {
    const std::string display = text_of(event, "display_id");
    const auto known =
        display.empty() ? numbers_by_display_.end() : numbers_by_display_.find(display);
    const bool is_new = known == numbers_by_display_.end();
    const int number = is_new ? ++pictures_ : known->second;
    if (is_new && !display.empty()) numbers_by_display_[display] = number;
    const std::string path = fmt::format("cloister-out/{}/figure-{}{}", name_, number, extension);
    auto saved = save_file(path, bytes);
    if (!saved) return std::move(saved).error().within("saving a picture");
    if (is_new && summary_ == Summary::Shown) say("saved " + path);
    return {};
}

Result<void> RunView::show_error(const json::object& error) const {
    std::string text;
    for (const json::value& line : array_of(error, "traceback")) {
        if (line.is_string()) text += with_newline(std::string(line.as_string()));
    }
    if (text.empty())
        text = fmt::format("{}: {}\n", text_of(error, "name"), text_of(error, "value"));
    return write_through(STDERR_FILENO, text);
}

void RunView::list_files() {
    end_line();
    if (summary_ == Summary::Quiet || !ending_ || ending_->files.empty()) return;
    std::string text = "files that the run made (fetch them with --out DIR):\n";
    for (const MadeFile& file : ending_->files) {
        text +=
            fmt::format("  {}  {}\n", printable(path_below_home(file.path)), size_text(file.size));
    }
    if (ending_->files_left_out > 0)
        text += fmt::format("  and {} more\n", ending_->files_left_out);
    (void)write_through(STDERR_FILENO,
                        text);  // nobody may be reading; the run has ended all the same
}

void RunView::summarize() {
    end_line();
    if (summary_ == Summary::Quiet || !ending_) return;
    // A traceback explains an error; what it says of a run that was stopped is how, not why.
    const bool explained =
        ending_->reason == EndReason::Ok || (ending_->reason == EndReason::Error && has_error_);
    if (!explained && !ending_->message.empty()) say(printable(ending_->message));
    std::string line = fmt::format(
        "ended {} in {:.2f} s · cpu {:.2f} s · peak memory {}", to_string(ending_->reason),
        static_cast<double>(ending_->wall_ms) / 1000, static_cast<double>(ending_->cpu_ms) / 1000,
        size_text(ending_->memory_peak_bytes));
    if (ending_->limit)
        line +=
            fmt::format(" · limit {} {}", printable(ending_->limit->name), ending_->limit->value);
    if (ending_->reason != EndReason::Ok) line = red(line);
    if (ending_->reason == EndReason::Ok &&
        !ending_->limits_hit.empty()) {  // another reason names its limit itself
        line += fmt::format(" · reached limits: {}",
                            printable(fmt::format("{}", fmt::join(ending_->limits_hit, ", "))));
    }
    (void)write_through(STDERR_FILENO, line + "\n");  // as above
    if (hints_ && ending_->reason == EndReason::Error && network_hint_.wanted())
        say(std::string(kNetworkHint));
}

}  // namespace cloister::cli
