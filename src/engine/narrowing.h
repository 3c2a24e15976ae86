// Narrowing: what the runs of one sandbox make of its limits while they run. Runs of several
// contexts run at the same time; of each limit the smallest value that one of them asked for holds.
//
//     auto held = co_await sandbox->narrowing()->hold(run->id(), {.memory_max = 64 << 20});
//     …
//     co_await sandbox->narrowing()->release(run->id());
//
// Threading: the loop's thread. Requests to the warden go one after another, in order.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "base/result.h"
#include "engine/run.h"
#include "engine/warden_client.h"
#include "loop/loop.h"

namespace cloister::engine {

class Narrowing : public std::enable_shared_from_this<Narrowing> {
  public:
    Narrowing(std::shared_ptr<WardenClient> warden, std::string sandbox)
        : warden_(std::move(warden)), sandbox_(std::move(sandbox)) {}

    // Answers when it holds. FailedPrecondition if the sandbox uses more already: then nothing has
    // changed.
    Task<Result<void>> hold(std::string run, Narrowed wanted);
    // Answers when the limits are as wide again as the other runs allow. One that cannot be put
    // back belongs to a sandbox that is gone, or to a warden that puts it back by itself.
    Task<void> release(std::string run);
    // Asks a warden that has come back for what is held.
    Task<void> repeat();

  private:
    Narrowed smallest() const;
    // Brings the warden up to date, one request at a time.
    Task<Result<void>> apply();

    const std::shared_ptr<WardenClient> warden_;
    const std::string sandbox_;
    std::map<std::string, Narrowed> held_;
    bool applying_ = false;
    Signal applied_;
};

}  // namespace cloister::engine
