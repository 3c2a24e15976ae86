// Pauses: stops the code of sandboxes and lets it go on.
//
//     auto paused = co_await Pauses::pause(pauses, sandbox, WhenBusy::Refuse, "asked");
//     auto use = co_await Pauses::awaken(pauses, sandbox, "call");   // before every call that
//     needs it to run; it is not paused while `use` lives
//
// The row says that a sandbox is paused before the warden stops it, and that it runs after the
// warden lets it go on: one whose row says "paused" may run, never the other way round. A deadline
// does not run meanwhile: it is moved by the length of the pause. Threading: the loop's thread.
#pragma once

#include <memory>
#include <string>

#include "engine/sandbox.h"
#include "engine/warden_client.h"
#include "store/store.h"

namespace cloister::engine {

// What a pause does while a run or another call goes on in the sandbox.
enum class WhenBusy { Refuse, Wait };

class Pauses : public std::enable_shared_from_this<Pauses> {
  public:
    Pauses(std::shared_ptr<store::Store> store, std::shared_ptr<WardenClient> warden)
        : store_(std::move(store)), warden_(std::move(warden)) {}

    // Answers when it is paused; one that is so already is a success. FailedPrecondition while it
    // is busy (Refuse). `why`: asked, idle, deadline.
    static Task<Result<void>> pause(std::shared_ptr<Pauses> self, std::shared_ptr<Sandbox> sandbox,
                                    WhenBusy when_busy, std::string why);
    // Answers when it runs. Unavailable if it cannot be made to; a cold one stays as it is then.
    static Task<Result<Sandbox::Use>> awaken(std::shared_ptr<Pauses> self,
                                             std::shared_ptr<Sandbox> sandbox, std::string why);
    // Writes down what is new about its life.
    Result<void> store_life(const Sandbox& sandbox);

  private:
    Task<Result<void>> stop(std::shared_ptr<Sandbox> sandbox);
    Task<Result<void>> go_on(std::shared_ptr<Sandbox> sandbox);

    const std::shared_ptr<store::Store> store_;
    const std::shared_ptr<WardenClient> warden_;
};

// The parts of a sandbox's row that its life is.
store::SandboxRow life_row(const Sandbox& sandbox);

}  // namespace cloister::engine
