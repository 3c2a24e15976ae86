// The nest's zygote as the reaper sees it: started when the warden asks, ready when it says so.
// Orders of agents pass through here, so that agents need not know which zygote lives; while none
// is ready they are dropped, which tells the agent to start an interpreter itself.
#pragma once

#include <sys/types.h>

#include <string>

#include "jail/zygote_init.h"
#include "os/socket.h"

namespace cloister::jail {

class Zygote {
  public:
    struct Filters {
        std::string own, forked;
    };
    static Result<Zygote> create(Filters filters);

    // The end that each agent is born with.
    const os::Fd& orders_in() const { return orders_.theirs; }
    // Readable: call forward(). `socket` is closed while there is no
    // zygote.
    const os::Fd& orders() const { return orders_.ours; }
    const os::Fd& socket() const { return socket_; }

    // Nothing happens if it lives.
    Result<void> start(os::Received order);
    void forward();
    // Its socket is readable: it is ready, or could not start, or is gone.
    void hear();
    // Whether it was the zygote that died.
    bool on_child_end(pid_t pid);

  private:
    Zygote(Filters filters, os::SocketPair orders)
        : filters_(std::move(filters)), orders_(std::move(orders)) {}

    Filters filters_;
    os::SocketPair orders_;
    os::Fd socket_;
    pid_t pid_ = -1;
    bool ready_ = false;
};

}  // namespace cloister::jail
