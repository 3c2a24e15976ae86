#include "os/poller.h"

#include <poll.h>

#include <cerrno>
#include <vector>

namespace cloister::os {

void Poller::watch(const Fd& fd, std::function<void()> on_readable) {
    entries_[fd.get()] = {.generation = next_generation_++, .on_readable = std::move(on_readable)};
}

void Poller::unwatch(const Fd& fd) {
    entries_.erase(fd.get());
}

Result<void> Poller::wait(int timeout_ms) {
    std::vector<pollfd> polled;
    std::vector<uint64_t> generations;
    for (const auto& [fd, entry] : entries_) {
        polled.push_back({.fd = fd, .events = POLLIN, .revents = 0});
        generations.push_back(entry.generation);
    }
    if (::poll(polled.data(), polled.size(), timeout_ms) < 0) {
        if (errno == EINTR) return {};
        return last_os_failure("polling");
    }
    for (size_t i = 0; i < polled.size(); ++i) {
        if (polled[i].revents == 0) continue;
        const auto found = entries_.find(polled[i].fd);
        if (found == entries_.end() || found->second.generation != generations[i]) continue;
        const auto call = found->second.on_readable;  // a copy: the call may unwatch itself
        call();
    }
    return {};
}

}  // namespace cloister::os
