// Processes: all programs that clients started in the sandbox (process.h): those that run, and the
// newest of those that have ended.
#pragma once

#include <list>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "programs/agent/process.h"

namespace cloister::agent {

class Processes {
  public:
    explicit Processes(const ProcessParts& parts) : parts_(parts) {}

    // Answers the client when the program executes, or says why it does not.
    Result<void> start(Connection& client, const StartProcess& op, const StringMap& env);
    Process* find(std::string_view id) const;
    // Kills it if it runs, and forgets it with all that it wrote; false if there is none.
    bool remove(std::string_view id);
    // A JSON list: all, or the one of that id.
    std::string list() const;
    size_t running() const;
    std::vector<pid_t> leaders() const;

    void on_child_end(const os::ChildEnd& end);
    std::optional<int64_t> next_deadline() const;
    void tick(int64_t now_ms);
    void tend();
    // Gives the room of the oldest output back; false if there is none that may go.
    bool drop_oldest();

  private:
    // One whose start has to wait for others'.
    struct Waiting {
        Connection* client;  // null: gone
        StartProcess op;
        StringMap env;
    };
    Result<void> begin(Connection& client, const StartProcess& op, const StringMap& env);
    void begin_waiting();
    size_t starting() const;
    void forget_surplus();

    const ProcessParts parts_;
    std::list<std::unique_ptr<Process>> processes_;  // oldest first
    std::list<Waiting> waiting_;
    std::list<std::unique_ptr<Process>> removed_;  // until they have ended
};

}  // namespace cloister::agent
