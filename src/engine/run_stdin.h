// RunStdin: the way from callers to the stdin of one run. Writers take turns; each waits until the
// run has started and its stdin has taken the bytes.
#pragma once

#include <memory>
#include <string>

#include "base/result.h"
#include "engine/agent.h"
#include "loop/loop.h"

namespace cloister::engine {

enum class StdinEnd { No, Yes };

class RunStdin : public std::enable_shared_from_this<RunStdin> {
  public:
    // The run has started; its stdin frames go over this connection.
    void open(std::shared_ptr<AgentConnection> agent);
    // The run is over: writers that wait get FailedPrecondition.
    void close();

    Task<Result<void>> write(std::string bytes, StdinEnd end);
    bool used() const { return used_; }  // anybody wrote, or tried to

  private:
    enum class State { Waiting, Open, Ended, Closed };
    Task<Result<void>> write_now(std::string bytes, StdinEnd end);

    State state_ = State::Waiting;
    std::shared_ptr<AgentConnection> agent_;
    bool busy_ = false;
    bool used_ = false;
    size_t writers_ = 0;
    Signal changed_;
};

}  // namespace cloister::engine
