// EgressClient: what cloisterd tells cloister-egress, over one unix connection that is made again
// when it breaks (programs/egressd/door.h has the words).
//
// Without a connection every call fails at once with Unavailable: whatever was carried is cut then.
// Threading: the loop's thread.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "loop/loop.h"
#include "os/fd.h"
#include "wire/json.h"

namespace cloister::engine {

// What the operator set for the network of all sandboxes.
struct NetworkSettings {
    std::vector<std::string> platform_allow, dns_servers;
    std::string upstream_proxy;  // a URL, or empty
    bool ca_bundle = false;      // the runtime of sandboxes has one (layout::kCaBundle)
};

class EgressClient : public std::enable_shared_from_this<EgressClient> {
  public:
    EgressClient(std::string socket_path, NetworkSettings settings)
        : socket_path_(std::move(socket_path)), settings_(std::move(settings)) {}

    // There is a connection (again), and egress knows the settings.
    void on_connected(std::function<void()> then) { on_connected_ = std::move(then); }
    // Lines of the log ("event"), and their ends ("end").
    void on_event(std::function<void(std::string_view, json::object)> then) {
        on_event_ = std::move(then);
    }
    void start();
    void stop();
    const NetworkSettings& settings() const { return settings_; }
    bool is_connected() const { return known_; }
    // Waits until egress is there: it may just be starting. Unavailable if it does not come.
    Task<Result<void>> connected();
    // `message` without its tag. The answer, or the error that it holds.
    Task<Result<json::object>> ask(json::object message, std::vector<os::Fd> fds = {});

  private:
    struct Pending {
        std::optional<Result<json::object>> end;
        Signal changed;
    };
    struct Outgoing {
        std::string frame;
        std::vector<os::Fd> fds;
    };
    static Task<void> keep_connected(std::shared_ptr<EgressClient> self);
    static Task<void> announce(std::shared_ptr<EgressClient> self);
    static Task<void> send_queued(std::shared_ptr<EgressClient> self);
    Task<void> read_until_broken();
    void take(json::object message);
    void fail_all();

    const std::string socket_path_;
    const NetworkSettings settings_;
    std::function<void()> on_connected_;
    std::function<void(std::string_view, json::object)> on_event_;
    std::shared_ptr<UnixStream> stream_;
    bool known_ = false;
    bool stopped_ = false;
    bool sending_ = false;
    Signal became_known_;
    std::deque<Outgoing> outgoing_;
    int64_t last_tag_ = 0;
    std::map<int64_t, std::shared_ptr<Pending>> pending_;
};

}  // namespace cloister::engine
