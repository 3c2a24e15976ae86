// RootDoor: the agent's second listener, for `sudo` inside the sandbox (wire/root_command.h). It
// knows one thing: to start a command as root of the sandbox, or as `user`, with the descriptors of
// the client, and to say how it ended. Whoever is inside may ask; root inside is no more than that.
//
//     RootDoor door(birth, processes, poller, kRootSocket);
//     TRY_OK(door.open());
//     … door.on_child_end(end) for each child that ended, door.go_on() now and then …
#pragma once

#include <list>
#include <memory>
#include <string>
#include <vector>

#include "os/poller.h"
#include "os/process.h"
#include "programs/agent/buffers.h"
#include "programs/agent/user_process.h"
#include "wire/root_command.h"

namespace cloister::agent {

class RootDoor {
  public:
    RootDoor(const Birth& birth, const UserProcesses& processes, os::Poller& poller,
             std::string path);
    ~RootDoor();
    RootDoor(const RootDoor&) = delete;

    Result<void> open();
    void on_child_end(const os::ChildEnd& end);
    // Reads on where memory was short, and forgets clients that are done with.
    void go_on();
    // Whether a command runs.
    bool is_busy() const;

  private:
    struct Client {
        Client(os::Fd connection, Budget& budget);
        os::Fd socket;  // closed: the client has its answer, or is gone
        std::vector<os::Fd> stdio;
        MessageReader reader;
        bool starved = false;
        os::Fd failure;  // says why the command could not be executed
        pid_t pid = -1;  // of the command, until it has ended
    };

    void accept_clients();
    void on_ready(Client& client);
    void take_stdio(Client& client);
    void read_request(Client& client);
    void start(Client& client, const RootRequest& request);
    void pass_signals_on(Client& client);
    void answer(Client& client, const RootReply& reply);
    void drop(Client& client);

    const Birth& birth_;
    const UserProcesses& processes_;
    os::Poller& poller_;
    const std::string path_;
    Budget requests_;
    os::Fd listener_;
    std::list<Client> clients_;
};

}  // namespace cloister::agent
