#include "os/poller.h"

#include <poll.h>

#include <cerrno>
#include <vector>

namespace cloister::os {
namespace {

short events_of(Interest interest) {
    switch (interest) {
        case Interest::None:
            return 0;
        case Interest::Read:
            return POLLIN;
        case Interest::Write:
            return POLLOUT;
        case Interest::ReadWrite:
            return POLLIN | POLLOUT;
        case Interest::Urgent:
            return POLLPRI;
    }
    return 0;
}

}  // namespace

void Poller::watch(const Fd& fd, std::function<void()> on_ready, Interest interest) {
    entries_[fd.get()] = {
        .generation = next_generation_++, .interest = interest, .on_ready = std::move(on_ready)};
}

void Poller::unwatch(const Fd& fd) {
    entries_.erase(fd.get());
}

void Poller::set_interest(const Fd& fd, Interest interest) {
    const auto found = entries_.find(fd.get());
    if (found != entries_.end()) found->second.interest = interest;
}

Result<void> Poller::wait(int timeout_ms) {
    std::vector<pollfd> polled;
    std::vector<uint64_t> generations;
    for (const auto& [fd, entry] : entries_) {
        // A closed other end is always reported, so without an interest the descriptor is left out.
        if (entry.interest == Interest::None) continue;
        polled.push_back({.fd = fd, .events = events_of(entry.interest), .revents = 0});
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
        const auto call = found->second.on_ready;  // a copy: the call may unwatch itself
        call();
    }
    return {};
}

}  // namespace cloister::os
