// Runs: every run of the service: starts them, finds them, keeps their records.
//
// The newest ended runs stay in memory with their events; older ones are answered from the store.
// Threading: the loop's thread.
#pragma once

#include <deque>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/result.h"
#include "engine/contexts.h"
#include "engine/run.h"
#include "engine/sandbox.h"
#include "store/store.h"

namespace cloister::engine {

class Runs : public std::enable_shared_from_this<Runs> {
  public:
    Runs(std::shared_ptr<store::Store> store, std::shared_ptr<Contexts> contexts)
        : store_(std::move(store)), contexts_(std::move(contexts)) {}

    // Stores its row and puts it into the queue of its context. With an idempotency key that is
    // known for this code, the run that has it; AlreadyExists if only its record is left.
    Result<std::shared_ptr<Run>> start(const std::shared_ptr<Sandbox>& sandbox, RunSpec spec);
    // One that is in memory, or null.
    std::shared_ptr<Run> find(std::string_view project, std::string_view id) const;
    // The record of any run of the last limits::kRunRecordKeepMs; NotFound else.
    Result<json::object> record(std::string_view project, std::string_view id) const;
    size_t active() const { return active_; }

    // --- Runs that a former server left without an end ---
    Result<std::vector<store::RunRow>> left_over() const;  // in the order in which they came
    // Goes on with it in its context, or begins it. NotFound if the context cannot be made again.
    Result<std::shared_ptr<Run>> take_over(const std::shared_ptr<Sandbox>& sandbox,
                                           const store::RunRow& row, Run::Begun begun);
    Result<void> end_left_over(store::RunRow row, const Death& death);

    // Ends that could not be stored are tried again; old records go.
    void tidy();

  private:
    // The run of that id, if there is one: see start().
    Result<std::shared_ptr<Run>> find_again(const Sandbox& sandbox, const std::string& id,
                                            const RunSpec& spec) const;
    std::shared_ptr<Run> enter(std::shared_ptr<Run> run);
    Run::Keep keeper();
    bool keep(Run& run);
    Result<void> store_end(const Run& run);
    void store_again();
    void expire();
    void forget_oldest();

    const std::shared_ptr<store::Store> store_;
    const std::shared_ptr<Contexts> contexts_;
    std::unordered_map<std::string, std::shared_ptr<Run>> runs_;  // by project/id
    std::deque<std::shared_ptr<Run>> ended_;                      // oldest first
    std::deque<std::shared_ptr<Run>> unstored_;                   // ended ones
    size_t ended_bytes_ = 0;
    size_t active_ = 0;
};

}  // namespace cloister::engine
