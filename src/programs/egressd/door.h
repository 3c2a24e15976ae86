// What cloisterd tells egress, and what egress tells it: JSON in frames over one unix connection
// (wire/frame.h), descriptors beside them.
//
//   → {"op":"configure","tag":1,"platform_allow":[…],"dns_servers":[…]}        first
//   → {"op":"attach","tag":2,"sandbox":ID,"fds":N,"policies":[{mode, allow_out, deny_out}…]}
//   → {"op":"policy","tag":3,"sandbox":ID,"policies":[…]}    the sandbox's own, then those of runs
//   → {"op":"detach","tag":4,"sandbox":ID}
//   → {"op":"keep","tag":5,"sandboxes":[ID…]}                all others go
//   ← {"tag":2}  {"tag":3,"error":…,"kind":…}  {"tag":5,"sandboxes":[ID…]}     what is there
//   ← {"event":{…}}  {"end":{…}}                             lines of the log
//
// Listeners outlive the connection: a new cloisterd goes on with them.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <string>

#include "programs/egressd/sandbox_net.h"
#include "wire/frame.h"
#include "wire/json.h"

namespace cloister::egressd {

class Door : public std::enable_shared_from_this<Door> {
  public:
    static Result<std::shared_ptr<Door>> open(const std::string& socket);
    static Task<void> serve(std::shared_ptr<Door> self);
    void close();

  private:
    Door();
    static Task<void> converse(std::shared_ptr<Door> self, std::shared_ptr<UnixStream> stream);
    static Task<void> send_queued(std::shared_ptr<Door> self);
    Result<void> take(std::string_view message);
    Result<void> handle(const std::string& op, const json::object& message, json::object& answer);
    Result<void> configure(const json::object& message);
    Result<void> attach(const std::string& sandbox, const json::object& message);
    Result<void> set_policy(const std::string& sandbox, const json::object& message);
    void keep(const json::object& message, json::object& answer);
    void detach(const std::string& sandbox);
    Result<egress::PolicyStack> policies_of(const json::object& message) const;
    void send(const json::object& message);

    std::shared_ptr<Descriptor> listener_;
    std::shared_ptr<UnixStream> stream_;  // the newest connection
    std::deque<std::string> outgoing_;
    bool sending_ = false;
    std::deque<os::Fd> fds_;  // that came, and that no message has taken yet
    std::shared_ptr<Shared> shared_;
    std::vector<std::string> platform_allow_;
    std::map<std::string, std::shared_ptr<SandboxNet>> sandboxes_;
};

}  // namespace cloister::egressd
