#include "os/page_out.h"

#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <string>
#include <vector>

#include "os/fd.h"

namespace cloister::os {
namespace {

constexpr size_t kMapsMax = 16 << 20;
constexpr size_t kRangesPerCall = 1024;  // the kernel takes no more

// START-END PERMISSIONS …: private memory that may be written to; nothing for other lines.
bool parse_private(std::string_view line, iovec& range) {
    uint64_t start = 0, end = 0;
    const char* last = line.data() + line.size();
    const auto first = std::from_chars(line.data(), last, start, 16);
    if (first.ec != std::errc() || first.ptr == last || *first.ptr != '-') return false;
    const auto second = std::from_chars(first.ptr + 1, last, end, 16);
    const std::string_view rest(second.ptr, static_cast<size_t>(last - second.ptr));
    if (second.ec != std::errc() || !rest.starts_with(" rw") || rest.size() < 5 || rest[4] != 'p')
        return false;
    range = {.iov_base = reinterpret_cast<void*>(start), .iov_len = end - start};
    return end > start;
}

std::vector<iovec> private_ranges(std::string_view maps) {
    std::vector<iovec> ranges;
    while (!maps.empty()) {
        const size_t length = std::min(maps.find('\n'), maps.size());
        iovec range{};
        if (parse_private(maps.substr(0, length), range)) ranges.push_back(range);
        maps.remove_prefix(std::min(length + 1, maps.size()));
    }
    return ranges;
}

}  // namespace

bool swap_in(std::string_view meminfo) {
    constexpr std::string_view kTotal = "SwapTotal:";
    const size_t at = meminfo.find(kTotal);
    if (at == std::string_view::npos) return false;
    const size_t digit = meminfo.find_first_of("123456789\n", at);
    return digit != std::string_view::npos && meminfo[digit] != '\n';
}

bool has_swap() {
    const auto text = read_file("/proc/meminfo", 64 << 10);
    return text && swap_in(*text);
}

Result<uint64_t> page_out(pid_t process) {
    const Fd pidfd(static_cast<int>(::syscall(SYS_pidfd_open, process, 0)));
    if (!pidfd.open()) return last_os_failure("opening a process");
    const std::string maps = TRY(read_file("/proc/" + std::to_string(process) + "/maps", kMapsMax));
    const std::vector<iovec> ranges = private_ranges(maps);
    uint64_t asked = 0;
    for (size_t at = 0; at < ranges.size(); at += kRangesPerCall) {
        const size_t count = std::min(kRangesPerCall, ranges.size() - at);
        const auto advised =
            ::syscall(SYS_process_madvise, pidfd.get(), &ranges[at], count, MADV_PAGEOUT, 0);
        if (advised < 0) return last_os_failure("paging a process out");
        asked += static_cast<uint64_t>(advised);
    }
    return asked;
}

}  // namespace cloister::os
