// The warden's state machine: what sandboxes there are, and which step each of them takes next.
//
//   create ─► Making (a helper makes its objects) ─► Starting (the nest makes its processes) ─►
//   Running
//                                                                                                 │
//   destroy, or a failed step: killed at once, then ─► Removing (a helper) ─► forgotten  ◄────
//   Ended (by itself): its files stay until it is destroyed
//   revive: Ended ─► Making … Running, on the files that it has; if that fails, Ended again
//
// What lives when a warden is killed, the next one takes over (recover.h) and goes on with: here
// those sandboxes begin as Running, or as Ended if they ended meanwhile.
//
// Nothing here waits: slow steps run in helpers, and every function returns at once.
// Single-threaded.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "jail/nest_protocol.h"
#include "jail/sandbox_objects.h"
#include "os/poller.h"
#include "os/socket.h"
#include "programs/warden/helpers.h"
#include "programs/warden/journal.h"
#include "programs/warden/limit_changes.h"
#include "programs/warden/nests.h"
#include "programs/warden/recover.h"
#include "programs/warden/weigher.h"
#include "wire/warden.h"

namespace cloister::warden {

using Answer = std::function<void(const Result<void>&)>;

class Warden {
  public:
    Warden(os::Poller& poller, const jail::Host& host, const jail::NestTools& tools,
           Journal& journal);
    // Takes over what a former warden left alive.
    void adopt(Recovered recovered);
    Warden(const Warden&) = delete;
    Warden& operator=(const Warden&) = delete;

    // Called for each sandbox that ended without being asked to.
    void on_ended(std::function<void(const EndedEvent&)> tell) { tell_ended_ = std::move(tell); }

    void create(const JailPlan& plan, Answer answer);
    void destroy(const Id& sandbox, Answer answer);
    std::vector<Id> list() const;
    // Those that ended by themselves and were not destroyed yet.
    std::vector<EndedEvent> ended() const;
    Result<UsageReply> usage(const Id& sandbox) const;
    // Stops the code of a running sandbox, or lets it go on.
    void freeze(const FreezeRequest& request, Answer answer);
    // Starts one that has ended again.
    void revive(const Id& sandbox, Answer answer);
    // FailedPrecondition while it grows already.
    void grow_pool(uint64_t bytes, Answer answer);
    // Narrows the limits of a running sandbox; 0 puts that of its plan back.
    void narrow(const NarrowRequest& request, Answer answer);

    // Makes or removes a running sandbox's way out (jail/network_path.h).
    using PathAnswer = std::function<void(Result<std::vector<os::Fd>>)>;
    void network(const NetworkRequest& request, const PathAnswer& answer);

    // Gives up creates that take too long, and looks at CPU weights; answers the milliseconds until
    // there is something to do again, or -1.
    int check_deadlines();
    // Kills everything. Keep polling until stopped().
    void stop();
    bool stopped() const;

  private:
    enum class State { Making, Starting, Running, Ended, Removing };
    struct Sandbox {
        JailPlan plan;
        std::string nest;
        uint32_t slot = 0;
        State state = State::Making;
        bool doomed = false;  // to be removed, whatever it reaches
        // Being started again, or paused when the warden stops: with its processes nothing of its
        // files goes, and it is Ended then.
        bool reviving = false;
        bool frozen = false;
        bool processes_gone = false;
        EndedEvent end;  // of one that ended by itself
        int64_t create_deadline_ms = 0;
        os::Fd ready;          // read end of its ready pipe, while Making or Starting
        os::Pidfd init;        // from its birth on
        int32_t nest_pid = 0;  // of init, in the nest
        Answer created;        // while nobody was told
        std::vector<Answer> destroyed;
    };

    void adopt_sandbox(RecoveredSandbox recovered);
    void note(const Result<void>& written);
    Result<void> begin(const JailPlan& plan, Answer& answer);
    Result<void> begin_again(const JailPlan& plan, const std::string& old_nest, Answer& answer);
    Result<Nest*> home_for(const JailPlan& plan);
    void enter(const JailPlan& plan, const Nest& nest, uint32_t slot, os::Pipe ready,
               Answer& answer);
    void revival_failed(Sandbox& sandbox);
    void let_go(Sandbox& sandbox);
    void page_out(const Sandbox& sandbox);
    void make_objects(Sandbox& sandbox, const Nest& nest, os::Fd ready,
                      const std::string& old_nest);
    void objects_made(const Id& id, const Result<void>& result);
    void ready_readable(const Id& id);
    void fail(Sandbox& sandbox, const Error& error);
    void settle(Sandbox& sandbox);
    void remove(Sandbox& sandbox);
    void objects_removed(const Id& id, const Result<void>& result);
    void processes_ended(Sandbox& sandbox, const os::ChildEnd& end);

    void want_zygote(Nest& nest);
    void watch_nest(Nest& nest);
    void drain_reports(Nest& nest);
    void drain_log(Nest& nest);
    void nest_report(const std::string& nest, os::Received message);
    void born(const std::string& nest, const jail::NestReport& report, os::Fd pidfd);
    void nest_ended(Nest& nest);
    Sandbox* find(const Id& id);
    std::vector<Weigher::Running> running() const;

    os::Poller& poller_;
    const jail::Host& host_;
    Journal& journal_;
    Helpers helpers_;
    LimitChanges limit_changes_;
    Weigher weigher_;
    Nests nests_;
    std::map<Id, Sandbox> sandboxes_;
    std::function<void(const EndedEvent&)> tell_ended_;
    bool stopping_ = false;
    bool pool_grows_ = false;
};

}  // namespace cloister::warden
