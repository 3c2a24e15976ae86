// Recovery: what a new server does with the sandboxes and runs that a former one left, killed or
// crashed: rows say what should exist, the warden's list says what does, and each agent says what
// goes on in its sandbox.
//
//     auto recovery = std::make_shared<Recovery>(parts, warden);
//     TRY_OK(recovery->load());
//     spawn(Recovery::run(recovery));            // at each connection to the warden
//     co_await recovery->wait(most);             // before clients are let in
//
// A sandbox that is there goes on living; its idle time begins anew. Of its runs, those that the
// agent has begun are gone on with, all events from the first one on, with the numbers that they
// had; those that waited are begun, in their order. A run whose sandbox is gone ends
// `sandbox_lost`. Threading: the loop's thread.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "base/result.h"
#include "engine/agent_state.h"
#include "engine/one_call.h"
#include "engine/warden_client.h"

namespace cloister::engine {

class Recovery : public std::enable_shared_from_this<Recovery> {
  public:
    Recovery(OneCallParts parts, std::shared_ptr<WardenClient> warden)
        : parts_(std::move(parts)), warden_(std::move(warden)) {}

    // Reads the rows; ends the runs of sandboxes that are dead.
    Result<void> load(Sandboxes::Host host);
    // Finds out what became of the sandboxes, if that is not known yet.
    static Task<void> run(std::shared_ptr<Recovery> self);
    bool done() const { return left_.empty() && working_ == 0; }
    // Until all is taken over, or `most` has passed.
    Task<void> wait(std::chrono::milliseconds most);

  private:
    static Task<void> work(std::shared_ptr<Recovery> self);
    Task<void> take_over(std::shared_ptr<Sandbox> sandbox);
    Task<void> take_over_contents(std::shared_ptr<Sandbox> sandbox);
    void take_over_runs(const std::shared_ptr<Sandbox>& sandbox, const AgentState& state);
    void take_over_one_call(const std::shared_ptr<Sandbox>& sandbox,
                            const std::shared_ptr<Run>& run, const std::vector<std::string>& ended);
    void end_runs_of(const Sandbox& sandbox, const Death& death);
    void end_run(const store::RunRow& row, const Death& death);

    const OneCallParts parts_;
    const std::shared_ptr<WardenClient> warden_;
    std::deque<std::shared_ptr<Sandbox>> left_;               // not taken over yet
    std::map<std::string, std::vector<store::RunRow>> runs_;  // without an end, by sandbox
    std::set<std::string> there_;                             // what the warden has
    bool asking_ = false;
    size_t working_ = 0;
    Signal changed_;
};

}  // namespace cloister::engine
