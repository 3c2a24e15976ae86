#include "programs/warden/weigher.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <ranges>
#include <set>

#include "base/limits.h"
#include "base/log.h"
#include "base/time.h"
#include "jail/sandbox_objects.h"

namespace cloister::warden {
namespace {

// Something waited for a CPU for more than 100 ms of two seconds. A shorter window needs a
// capability that root in a container may not have; of the text the kernel drops the last
// character.
constexpr std::string_view kTrigger = "some 100000 2000000\n";
// How long it keeps looking after the last such event, and how seldom it looks without events.
constexpr int64_t kAwakeMs = 2 * limits::kBusyWindowMs;
constexpr int64_t kSeldomMs = 4'000;

os::CpuTurn turn_of(bool gives_way) {
    return gives_way ? os::CpuTurn::Last : os::CpuTurn::Usual;
}

Result<os::Fd> open_trigger() {
    os::Fd file = TRY(os::open_file("/proc/pressure/cpu", O_RDWR | O_NONBLOCK));
    TRY_OK(os::write_all(file, kTrigger));
    return file;
}

}  // namespace

void Weigher::open(os::Poller& poller) {
    if (!cgroups_.has(os::Controller::Cpu) || !cgroups_.has(os::Controller::Cpuacct)) return;
    auto trigger = open_trigger();
    if (!trigger) {
        log_info("CPU weights are looked at now and then", {{"reason", trigger.error().message}});
        next_look_ms_ = steady_ms();
        return;
    }
    pressure_ = std::move(*trigger);
    poller.watch(pressure_, [this] { wake(steady_ms()); }, os::Interest::Urgent);
}

void Weigher::wake(int64_t now_ms) {
    awake_until_ms_ = now_ms + kAwakeMs;
    if (!next_look_ms_) next_look_ms_ = now_ms;
}

void Weigher::tick(int64_t now_ms) {
    if (!next_look_ms_ || now_ms < *next_look_ms_) return;
    const std::vector<Running> running = running_();
    forget_ended(running);
    const size_t known = entries_.size();
    for (const Running& sandbox : running) look(now_ms, sandbox);
    weigh_nests();
    const bool any_new = entries_.size() > known;  // of these one look tells nothing
    const bool any_busy = std::ranges::any_of(
        entries_ | std::views::values, [](const Entry& entry) { return entry.meter.busy(); });
    const bool any_active = std::ranges::any_of(
        entries_ | std::views::values, [](const Entry& entry) { return entry.meter.active(); });
    if (any_busy || now_ms < awake_until_ms_ || (!pressure_.open() && (any_active || any_new))) {
        next_look_ms_ = now_ms + limits::kBusyLookMs;
    } else if (!pressure_.open()) {
        next_look_ms_ = now_ms + kSeldomMs;
    } else {
        next_look_ms_.reset();
    }
}

void Weigher::forget_ended(const std::vector<Running>& running) {
    const std::set<Running> alive(running.begin(), running.end());
    std::erase_if(entries_, [&](const auto& entry) { return !alive.contains(entry.first); });
    std::erase_if(nests_, [&](const auto& nest) {
        return std::ranges::none_of(alive,
                                    [&](const Running& one) { return one.nest == nest.first; });
    });
}

void Weigher::look(int64_t now_ms, const Running& sandbox) {
    const std::string group = jail::sandbox_group(sandbox.nest, sandbox.sandbox.view());
    Entry& entry = entries_[sandbox];
    const bool first = !entry.cpu_usage.open();  // a former warden may have weighed it
    if (first) {
        auto file = cgroups_.stat(group, os::GroupStat::CpuUsage);
        if (!file) return;  // it is just ending
        entry.cpu_usage = std::move(*file);
    }
    std::array<char, 4096> text{};
    const ssize_t got = ::pread(entry.cpu_usage.get(), text.data(), text.size(), 0);
    if (got <= 0) return;
    const uint64_t usec =
        os::parse_cpu_usec({text.data(), static_cast<size_t>(got)}, cgroups_.format());
    const bool before = entry.meter.busy();
    entry.meter.look(now_ms, usec / 1000);
    if (first || entry.meter.busy() != before) set_turn(group, turn_of(entry.meter.busy()));
}

void Weigher::weigh_nests() {
    std::map<std::string, NestBalance> balances;
    for (const auto& [sandbox, entry] : entries_) balances[sandbox.nest].add(entry.meter);
    for (const auto& [nest, balance] : balances) {
        const bool gives_way = balance.gives_way();
        const auto [known, first] = nests_.try_emplace(nest, gives_way);
        if (!first && known->second == gives_way) continue;
        known->second = gives_way;
        set_turn(nest, turn_of(gives_way));
    }
}

// For a group that ends just now nothing needs to be set.
void Weigher::set_turn(const std::string& group, os::CpuTurn turn) {
    (void)cgroups_.limit(group, {.cpu_turn = turn});
}

}  // namespace cloister::warden
