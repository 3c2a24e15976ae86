#include "programs/warden/journal.h"

#include <fcntl.h>

#include <filesystem>
#include <sstream>

#include "base/ids.h"
#include "base/limits.h"

namespace cloister::warden {
namespace {

constexpr size_t kJournalMax = 2 * limits::kJournalBytesMax;

// "+ SANDBOX NEST SLOT" or "- SANDBOX"
void apply_line(const std::string& line, JournalEntries& entries) {
    std::istringstream words(line);
    std::string mark, sandbox;
    words >> mark >> sandbox;
    if (!is_id(sandbox)) return;
    if (mark == "-") entries.erase(sandbox);
    JournalEntry entry;
    if (mark == "+" && words >> entry.nest >> entry.slot && is_id(entry.nest))
        entries[sandbox] = entry;
}

std::string line_of(std::string_view sandbox, const JournalEntry& entry) {
    return "+ " + std::string(sandbox) + " " + entry.nest + " " + std::to_string(entry.slot) + "\n";
}

Result<os::Fd> open_for_appending(const std::string& path) {
    return os::open_file(path, O_WRONLY | O_APPEND | O_CREAT | O_NOFOLLOW, 0600);
}

}  // namespace

JournalEntries parse_journal(std::string_view text) {
    JournalEntries entries;
    for (size_t end = text.find('\n'); end != std::string_view::npos; end = text.find('\n')) {
        apply_line(std::string(text.substr(0, end)), entries);
        text.remove_prefix(end + 1);
    }
    return entries;
}

Result<Journal> Journal::open(const std::string& path) {
    os::Fd file = TRY(open_for_appending(path));
    const std::string text = TRY(os::read_file(path, kJournalMax));
    Journal journal(path, std::move(file), parse_journal(text), text.size());
    TRY_OK(journal.compact());  // a torn last line must not run into the next one
    return journal;
}

Result<void> Journal::creating(std::string_view sandbox, const JournalEntry& entry) {
    entries_[std::string(sandbox)] = entry;
    return append(line_of(sandbox, entry));
}

Result<void> Journal::removed(std::string_view sandbox) {
    entries_.erase(std::string(sandbox));
    return append("- " + std::string(sandbox) + "\n");
}

Result<void> Journal::append(std::string_view line) {
    if (bytes_ + line.size() > limits::kJournalBytesMax) return compact();  // it says the same
    TRY_OK(os::write_all(file_, line));
    bytes_ += line.size();
    return {};
}

// Writes the entries beside the old book and puts the new one in its place.
Result<void> Journal::compact() {
    std::string text;
    for (const auto& [sandbox, entry] : entries_) text += line_of(sandbox, entry);
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
