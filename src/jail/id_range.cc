#include "jail/id_range.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <optional>
#include <string>

#include "base/limits.h"
#include "base/number.h"

namespace cloister::jail {
namespace {

constexpr const char* kClaims = "/run/cloister-ids";  // byte N is locked while block N has an owner
constexpr uint32_t kBlock = limits::kNestSlots * limits::kSlotIds;
constexpr uint32_t kBlocks = (limits::kHostIdLast - limits::kHostIdFirst + 1) / kBlock;

bool try_lock(const os::Fd& file, uint32_t block) {
    struct flock lock{};
    lock.l_type = F_WRLCK;
    lock.l_whence = SEEK_SET;
    lock.l_start = block;
    lock.l_len = 1;
    return ::fcntl(file.get(), F_OFD_SETLK, &lock) == 0;
}

// Whether a line `name:first:count` reaches into our range.
bool overlaps(std::string_view line) {
    const size_t one = line.find(':');
    const size_t two = one == std::string_view::npos ? one : line.find(':', one + 1);
    if (two == std::string_view::npos) return false;
    const auto first = whole_number<uint64_t>(line.substr(one + 1, two - one - 1));
    const auto count = whole_number<uint64_t>(line.substr(two + 1));
    if (!first || !count || *count == 0) return false;
    if (*first >= limits::kHostIdFirst) return *first <= limits::kHostIdLast;
    return *count > limits::kHostIdFirst - *first;
}

Result<void> check_file(const std::string& path) {
    if (::access(path.c_str(), F_OK) != 0) return {};
    return check_subordinate_ids(TRY(os::read_file(path, limits::kMiB)), path);
}

}  // namespace

Result<IdRange> IdRange::claim() {
    os::Fd file = TRY(os::open_file(kClaims, O_RDWR | O_CREAT | O_NOFOLLOW, 0600));
    for (uint32_t block = 0; block < kBlocks; ++block) {
        if (try_lock(file, block))
            return IdRange(std::move(file), limits::kHostIdFirst + block * kBlock);
    }
    return make_error(ErrorKind::ResourceExhausted,
                      "every block of host ids is taken: delete sandboxes");
}

Result<void> check_subordinate_ids(std::string_view text, std::string_view file_name) {
    while (!text.empty()) {
        const size_t end = text.find('\n');
        const std::string_view line = text.substr(0, end);
        if (overlaps(line)) {
            return make_error(ErrorKind::FailedPrecondition,
                              "the line \"" + std::string(line) + "\" of " +
                                  std::string(file_name) + " gives away ids from " +
                                  std::to_string(limits::kHostIdFirst) + " to " +
                                  std::to_string(limits::kHostIdLast) +
                                  ", which sandboxes need: move it below or above");
        }
        if (end == std::string_view::npos) break;
        text.remove_prefix(end + 1);
    }
    return {};
}

Result<void> check_host_ids() {
    TRY_OK(check_file("/etc/subuid"));
    return check_file("/etc/subgid");
}

}  // namespace cloister::jail
