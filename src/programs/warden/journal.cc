#include "programs/warden/journal.h"

#include <fcntl.h>
#include <unistd.h>

#include <sstream>

#include "base/ids.h"
#include "base/limits.h"

namespace cloister::warden {
namespace {

constexpr size_t kJournalMax = 256 * limits::kMiB;

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
    return Journal(path, std::move(file), parse_journal(text));
}

Result<void> Journal::clear() {
    if (::ftruncate(file_.get(), 0) != 0) return last_os_failure("clearing " + path_);
    leftovers_.clear();
    return {};
}

Result<void> Journal::creating(std::string_view sandbox, const JournalEntry& entry) {
    return os::write_all(file_, "+ " + std::string(sandbox) + " " + entry.nest + " " +
                                    std::to_string(entry.slot) + "\n");
}

Result<void> Journal::removed(std::string_view sandbox) {
    return os::write_all(file_, "- " + std::string(sandbox) + "\n");
}

}  // namespace cloister::warden
