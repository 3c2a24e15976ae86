// Network: what one sandbox may reach, and what it did. The policy is the sandbox's own, narrowed
// by those of its runs while they run: what one of them denies is denied.
//
//     auto open = co_await sandbox->network()->apply();             // when the sandbox is made
//     auto done = co_await sandbox->network()->change(policy);      // live
//     auto held = co_await sandbox->network()->hold(run, policy);   // … release(run)
//
// Nothing is carried before apply() has succeeded. Threading: the loop's thread. Changes go one
// after another, in order.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <string>

#include "egress/policy.h"
#include "engine/egress_client.h"
#include "engine/warden_client.h"

namespace cloister::engine {

struct NetworkParts {
    std::shared_ptr<WardenClient> warden;
    std::shared_ptr<EgressClient> egress;
};

class Network : public std::enable_shared_from_this<Network> {
  public:
    Network(NetworkParts parts, std::string sandbox, egress::PolicySpec policy)
        : parts_(std::move(parts)), sandbox_(std::move(sandbox)), policy_(std::move(policy)) {}

    const egress::PolicySpec& policy() const { return policy_; }
    // Brings warden and egress up to date. Without egress nothing is carried, so that `disabled` is
    // a success then; anything else is Unavailable.
    Task<Result<void>> apply();
    // The old policy stays if it fails.
    Task<Result<void>> change(egress::PolicySpec policy);
    Task<Result<void>> hold(std::string run, egress::PolicySpec policy);
    Task<void> release(std::string run);
    // Egress has started again, or a new server asks it: whether it has this sandbox's listeners.
    // A former server's sandbox: apply() is somebody else's.
    void take_over() { begun_ = true; }
    bool begun() const { return begun_; }
    enum class Attached { No, Yes };
    void set_attached(Attached attached);
    // The sandbox has ended.
    Task<void> close();

    // --- The log ---
    void take_event(json::object event, const std::vector<std::string>& runs);
    void take_end(const json::object& end);
    struct LogQuery {
        int64_t after = 0;  // numbers above this one
        std::string run;    // empty: all
    };
    json::object log(const LogQuery& query) const;

  private:
    warden::PathKind wanted() const;
    Task<Result<void>> bring_up_to_date();
    Task<Result<void>> detach();
    json::array policies() const;

    const NetworkParts parts_;
    const std::string sandbox_;
    egress::PolicySpec policy_;
    std::map<std::string, egress::PolicySpec> held_;  // by run
    warden::PathKind attached_ = warden::PathKind::None;
    bool applying_ = false, closed_ = false;
    bool begun_ = false;  // somebody has wanted it to be applied
    Signal applied_;

    std::deque<json::object> log_;
    int64_t last_number_ = 0;
};

}  // namespace cloister::engine
