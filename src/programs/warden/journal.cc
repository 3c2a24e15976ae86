#include "programs/warden/journal.h"

#include <fcntl.h>
#include <fmt/format.h>

#include <filesystem>
#include <sstream>

#include "base/ids.h"
#include "base/limits.h"

namespace cloister::warden {
namespace {

constexpr size_t kJournalMax = 2 * limits::kJournalBytesMax;

bool read_id(std::istream& words, Id& id) {
    std::string text;
    words >> text;
    const auto read = Id::from(text);
    if (read) id = *read;
    return read.has_value();
}

void read_nest(const std::string& nest, std::istream& words, Book& book) {
    NestEntry entry;
    if (!read_id(words, entry.project) || !read_id(words, entry.template_revision)) return;
    if (words >> entry.runtime >> entry.first_id && is_id(entry.runtime))
        book.nests[nest] = std::move(entry);
}

// A warden of before did not write the project and the template: they are those of the nest.
bool read_home(const std::string& nest, std::istream& words, const Book& book, JailPlan& plan) {
    if (read_id(words, plan.project)) return read_id(words, plan.template_revision);
    const auto home = book.nests.find(nest);
    if (home == book.nests.end()) return false;
    plan.project = home->second.project;
    plan.template_revision = home->second.template_revision;
    return true;
}

void read_sandbox(const std::string& nest, Progress progress, std::istream& words, Book& book) {
    SandboxEntry entry{.nest = nest, .progress = progress};
    JailPlan& plan = entry.plan;
    if (!read_id(words, plan.sandbox)) return;
    words >> entry.slot >> plan.cpu >> plan.memory_max >> plan.disk_max >>
        plan.disk_bytes_per_second >> plan.disk_iops >> plan.pids_max >> plan.root_allowed;
    if (words && read_home(nest, words, book, plan) && entry.slot < limits::kNestSlots)
        book.sandboxes[std::string(plan.sandbox.view())] = std::move(entry);
}

void set_progress(const std::string& sandbox, Progress progress, Book& book) {
    const auto found = book.sandboxes.find(sandbox);
    if (found != book.sandboxes.end()) found->second.progress = progress;
}

void apply_line(const std::string& line, Book& book) {
    std::istringstream words(line);
    std::string what, id;
    words >> what >> id;
    if (!is_id(id)) return;
    if (what == "nest") read_nest(id, words, book);
    if (what == "no-nest") book.nests.erase(id);
    if (what == "making") read_sandbox(id, Progress::Making, words, book);
    if (what == "reviving") read_sandbox(id, Progress::Reviving, words, book);
    if (what == "running") set_progress(id, Progress::Running, book);
    if (what == "ending") set_progress(id, Progress::Ending, book);
    if (what == "gone") book.sandboxes.erase(id);
}

std::string nest_line(std::string_view nest, const NestEntry& entry) {
    return fmt::format("nest {} {} {} {} {}\n", nest, entry.project.view(),
                       entry.template_revision.view(), entry.runtime, entry.first_id);
}

std::string making_line(const SandboxEntry& entry) {
    const JailPlan& plan = entry.plan;
    return fmt::format("{} {} {} {} {} {} {} {} {} {} {} {} {}\n",
                       entry.progress == Progress::Reviving ? "reviving" : "making", entry.nest,
                       plan.sandbox.view(), entry.slot, plan.cpu, plan.memory_max, plan.disk_max,
                       plan.disk_bytes_per_second, plan.disk_iops, plan.pids_max, plan.root_allowed,
                       plan.project.view(), plan.template_revision.view());
}

std::string sandbox_lines(std::string_view sandbox, const SandboxEntry& entry) {
    std::string lines = making_line(entry);
    if (entry.progress == Progress::Running) lines += fmt::format("running {}\n", sandbox);
    if (entry.progress == Progress::Ending) lines += fmt::format("ending {}\n", sandbox);
    return lines;
}

Result<os::Fd> open_for_appending(const std::string& path) {
    return os::open_file(path, O_WRONLY | O_APPEND | O_CREAT | O_NOFOLLOW, 0600);
}

}  // namespace

Book parse_journal(std::string_view text) {
    Book book;
    for (size_t end = text.find('\n'); end != std::string_view::npos; end = text.find('\n')) {
        apply_line(std::string(text.substr(0, end)), book);
        text.remove_prefix(end + 1);
    }
    return book;
}

Result<Journal> Journal::open(const std::string& path) {
    os::Fd file = TRY(open_for_appending(path));
    const std::string text = TRY(os::read_file(path, kJournalMax));
    Journal journal(path, std::move(file), parse_journal(text), text.size());
    TRY_OK(journal.compact());  // a torn last line must not run into the next one
    return journal;
}

Result<void> Journal::making_nest(const std::string& nest, const NestEntry& entry) {
    book_.nests[nest] = entry;
    auto written = append(nest_line(nest, entry));
    if (!written) book_.nests.erase(nest);
    return written;
}

Result<void> Journal::nest_gone(const std::string& nest) {
    book_.nests.erase(nest);
    return append("no-nest " + nest + "\n");
}

Result<void> Journal::making(const std::string& nest, uint32_t slot, const JailPlan& plan) {
    auto written = enter({.nest = nest, .slot = slot, .plan = plan});
    if (!written) book_.sandboxes.erase(std::string(plan.sandbox.view()));
    return written;
}

Result<void> Journal::reviving(const std::string& nest, uint32_t slot, const JailPlan& plan) {
    return enter({.nest = nest, .slot = slot, .progress = Progress::Reviving, .plan = plan});
}

Result<void> Journal::enter(const SandboxEntry& entry) {
    book_.sandboxes[std::string(entry.plan.sandbox.view())] = entry;
    return append(making_line(entry));
}

Result<void> Journal::running(std::string_view sandbox) {
    set_progress(std::string(sandbox), Progress::Running, book_);
    return append(fmt::format("running {}\n", sandbox));
}

Result<void> Journal::ending(std::string_view sandbox) {
    set_progress(std::string(sandbox), Progress::Ending, book_);
    return append(fmt::format("ending {}\n", sandbox));
}

Result<void> Journal::gone(std::string_view sandbox) {
    book_.sandboxes.erase(std::string(sandbox));
    return append(fmt::format("gone {}\n", sandbox));
}

Result<void> Journal::append(const std::string& line) {
    if (bytes_ + line.size() > limits::kJournalBytesMax) return compact();  // it says the same
    TRY_OK(os::write_all(file_, line));
    bytes_ += line.size();
    return {};
}

// Writes the book beside the old file and puts the new one in its place.
Result<void> Journal::compact() {
    std::string text;
    for (const auto& [nest, entry] : book_.nests) text += nest_line(nest, entry);
    for (const auto& [sandbox, entry] : book_.sandboxes) text += sandbox_lines(sandbox, entry);
    const std::string fresh = path_ + ".new";
    std::error_code failed;
    std::filesystem::remove(fresh, failed);
    os::Fd file = TRY(open_for_appending(fresh));
    TRY_OK(os::write_all(file, text));
    std::filesystem::rename(fresh, path_, failed);
    if (failed) return os_failure("renaming " + fresh, failed.value());
    file_ = std::move(file);
    bytes_ = text.size();
    return {};
}

}  // namespace cloister::warden
