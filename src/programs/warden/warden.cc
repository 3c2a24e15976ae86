#include "programs/warden/warden.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <memory>
#include <thread>

#include "base/failpoint.h"
#include "base/limits.h"
#include "base/log.h"
#include "base/time.h"
#include "jail/network_path.h"
#include "jail/stage.h"
#include "os/btrfs.h"
#include "os/page_out.h"
#include "os/socket.h"

namespace cloister::warden {
namespace {

// A process in a system call that cannot be interrupted is frozen when it comes back.
constexpr int64_t kFrozenWaitMs = 1'000;
constexpr size_t kStatMax = 64 * limits::kKiB;
constexpr size_t kPathMessageMax = 16;

// An answer is given once; whoever asks again finds it empty.
void give(Answer& answer, const Result<void>& result) {
    if (const Answer once = std::exchange(answer, nullptr)) once(result);
}

uint64_t read_stat(const os::CgroupTree& cgroups, const std::string& group, os::GroupStat stat,
                   const std::function<uint64_t(std::string_view)>& parse) {
    const auto file = cgroups.stat(group, stat);
    if (!file) return 0;  // this host does not count it
    const auto text = os::read_all(*file, kStatMax);
    return text ? parse(*text) : 0;
}

}  // namespace

Warden::Warden(os::Poller& poller, const jail::Host& host, const jail::NestTools& tools,
               Journal& journal)
    : poller_(poller),
      host_(host),
      journal_(journal),
      helpers_(poller),
      limit_changes_(helpers_, host.cgroups),
      weigher_(host.cgroups, [this] { return running(); }),
      nests_(host, tools, journal) {
    weigher_.open(poller_);
}

void Warden::adopt(Recovered recovered) {
    for (Nest& nest : recovered.nests) watch_nest(nests_.add(std::move(nest)));
    for (RecoveredSandbox& sandbox : recovered.sandboxes) adopt_sandbox(std::move(sandbox));
    nests_.retire_idle();
}

void Warden::adopt_sandbox(RecoveredSandbox recovered) {
    const Id id = recovered.plan.sandbox;
    Nest* nest = nests_.find(recovered.nest);
    if (nest != nullptr) nest->slots.set(recovered.slot);
    Sandbox& sandbox = sandboxes_[id];
    sandbox.plan = recovered.plan;
    sandbox.nest = std::move(recovered.nest);
    sandbox.slot = recovered.slot;
    sandbox.state = recovered.process ? State::Running : State::Ended;
    sandbox.processes_gone = !recovered.process;
    if (!recovered.process) return;
    sandbox.init = std::move(recovered.process->pidfd);
    sandbox.nest_pid = recovered.process->number_in_parent;
    sandbox.frozen = host_.cgroups.frozen(jail::user_group(sandbox.nest, id.view()));
    // Nobody else puts back what was narrowed for a run; whoever still wants it asks again.
    narrow({.sandbox = id}, [](const Result<void>&) {});
}

// A journal that cannot be written is no reason to stop: what it lacks is found by name.
void Warden::note(const Result<void>& written) {
    if (written) return;
    log_error("the journal cannot be written", {{"error", written.error().message}});
}

Warden::Sandbox* Warden::find(const Id& id) {
    const auto found = sandboxes_.find(id);
    return found == sandboxes_.end() ? nullptr : &found->second;
}

// --- Create ---

void Warden::create(const JailPlan& plan, Answer answer) {
    const auto begun = begin(plan, answer);
    if (!begun) give(answer, begun);
}

Result<void> Warden::begin(const JailPlan& plan, Answer& answer) {
    if (stopping_) return make_error(ErrorKind::Unavailable, "the warden is stopping");
    if (find(plan.sandbox) != nullptr)
        return make_error(ErrorKind::AlreadyExists, "the warden has such a sandbox");
    if (sandboxes_.size() >= limits::kSandboxesMax + kWarmSandboxesMax) {
        return make_error(ErrorKind::ResourceExhausted,
                          "this host holds no more sandboxes: delete some");
    }
    os::Pipe ready = TRY(os::make_pipe());
    Nest* nest = TRY(home_for(plan));
    const uint32_t slot = Nests::take_slot(*nest);
    if (auto written = journal_.making(nest->id, slot, plan); !written) {
        Nests::free_slot(*nest, slot);
        return std::move(written).error();
    }
    failpoint("warden:after_journal");
    enter(plan, *nest, slot, std::move(ready), answer);
    return {};
}

Result<Nest*> Warden::home_for(const JailPlan& plan) {
    Nest* nest = TRY(nests_.for_plan(plan));
    if (!nest->watched) watch_nest(*nest);
    return nest;
}

void Warden::enter(const JailPlan& plan, const Nest& nest, uint32_t slot, os::Pipe ready,
                   Answer& answer) {
    Sandbox& sandbox = sandboxes_[plan.sandbox];
    const bool again = !sandbox.nest.empty();
    const std::string old_nest = sandbox.nest;
    sandbox = {.plan = plan,
               .nest = nest.id,
               .slot = slot,
               .reviving = again,
               .create_deadline_ms = steady_ms() + limits::kSandboxCreateTimeoutMs,
               .ready = std::move(ready.read),
               .created = std::exchange(answer, nullptr)};
    poller_.watch(sandbox.ready, [this, id = plan.sandbox] { ready_readable(id); });
    make_objects(sandbox, nest, std::move(ready.write), old_nest);
}

// Of one that is started again (`old_nest` is not empty) whatever is left of its former processes
// goes first.
void Warden::make_objects(Sandbox& sandbox, const Nest& nest, os::Fd ready,
                          const std::string& old_nest) {
    const jail::Placement placement{
        .nest = nest.id, .first_id = nest.ids.first(), .slot = sandbox.slot};
    // The nest may end while the work waits for its turn, so the work holds its own copy of the
    // socket.
    auto socket = nest.process.socket.duplicate();
    if (!socket) return objects_made(sandbox.plan.sandbox, std::move(socket).error());
    const auto fds =
        std::make_shared<std::pair<os::Fd, os::Fd>>(std::move(*socket), std::move(ready));
    helpers_.run(
        [this, plan = sandbox.plan, placement, fds, old_nest]() -> Result<void> {
            auto files = jail::SandboxFiles::Fresh;
            if (!old_nest.empty()) {
                files = jail::SandboxFiles::Kept;
                TRY_OK(jail::remove_sandbox_processes(host_, old_nest,
                                                      std::string(plan.sandbox.view())));
            }
            return jail::create_sandbox_objects(host_, plan, placement, files, fds->first,
                                                fds->second);
        },
        [this, id = sandbox.plan.sandbox](const Result<void>& result) {
            objects_made(id, result);
        });
}

// Its processes may have been born, and its agent be ready, before this is heard of.
void Warden::objects_made(const Id& id, const Result<void>& result) {
    Sandbox* sandbox = find(id);
    if (sandbox == nullptr) return;
    if (sandbox->state == State::Making) sandbox->state = State::Starting;
    if (!result) {
        sandbox->processes_gone = true;  // no order was sent, so there are none
        return fail(*sandbox, result.error());
    }
    if (sandbox->doomed) settle(*sandbox);
}

// One byte from the agent, a report of what failed, or the end of whoever could have written
// either.
void Warden::ready_readable(const Id& id) {
    Sandbox* sandbox = find(id);
    const auto ready = jail::read_ready(sandbox->ready.get());
    poller_.unwatch(sandbox->ready);
    sandbox->ready.reset();
    if (!ready) {
        if (Nest* nest = nests_.find(sandbox->nest))
            drain_reports(*nest);  // was it born before it failed?
        if (!sandbox->init.open()) sandbox->processes_gone = true;
        return fail(*sandbox, ready.error());
    }
    failpoint("warden:before_running");
    sandbox->state = State::Running;
    sandbox->reviving = false;
    note(journal_.running(id.view()));
    failpoint("warden:after_running");
    give(sandbox->created, {});
    if (sandbox->doomed) return settle(*sandbox);
    if (Nest* nest = nests_.find(sandbox->nest)) want_zygote(*nest);
}

void Warden::fail(Sandbox& sandbox, const Error& error) {
    give(sandbox.created, error);
    // One that is asked to go while it is started again goes with its files.
    if (!sandbox.destroyed.empty() && sandbox.state != State::Removing) sandbox.reviving = false;
    if (!sandbox.doomed && !sandbox.reviving) note(journal_.ending(sandbox.plan.sandbox.view()));
    sandbox.doomed = true;
    failpoint("warden:after_ending");
    settle(sandbox);
}

// --- Destroy ---

void Warden::destroy(const Id& id, Answer answer) {
    Sandbox* sandbox = find(id);
    if (sandbox == nullptr) return give(answer, {});
    sandbox->destroyed.push_back(std::move(answer));
    fail(*sandbox, make_error(ErrorKind::Cancelled, "the sandbox was deleted while it was made"));
}

// The next step of a sandbox that is to go: kill what lives, then remove the objects. Each event
// that changes what this depends on calls it again.
void Warden::settle(Sandbox& sandbox) {
    if (sandbox.state == State::Making || sandbox.state == State::Removing) return;
    if (!sandbox.processes_gone) {
        let_go(sandbox);
        if (sandbox.init.open())
            (void)sandbox.init.signal(SIGKILL);  // fails only for a process that is dead
        return;
    }
    remove(sandbox);
}

void Warden::remove(Sandbox& sandbox) {
    sandbox.state = State::Removing;
    weigher_.forget({.nest = sandbox.nest, .sandbox = sandbox.plan.sandbox});
    if (sandbox.ready.open()) poller_.unwatch(sandbox.ready);
    sandbox.ready.reset();
    helpers_.run(
        [this, nest = sandbox.nest, id = std::string(sandbox.plan.sandbox.view()),
         only_processes = sandbox.reviving] {
            return only_processes ? jail::remove_sandbox_processes(host_, nest, id)
                                  : jail::remove_sandbox_objects(host_, nest, id);
        },
        [this, id = sandbox.plan.sandbox](const Result<void>& result) {
            objects_removed(id, result);
        });
}

void Warden::objects_removed(const Id& id, const Result<void>& result) {
    const auto found = sandboxes_.find(id);
    if (found == sandboxes_.end()) return;
    if (found->second.reviving) return revival_failed(found->second);
    auto destroyed = std::move(found->second.destroyed);
    failpoint("warden:after_removed");
    if (result) {
        if (Nest* nest = nests_.find(found->second.nest))
            Nests::free_slot(*nest, found->second.slot);
        note(journal_.gone(id.view()));
        failpoint("warden:after_gone");
        sandboxes_.erase(found);
        nests_.retire_idle();
    } else {
        log_error("a sandbox's objects are still there",
                  {{"sandbox", std::string(id.view())}, {"error", result.error().message}});
        found->second.state = State::Ended;  // the next destroy tries again
    }
    for (Answer& answer : destroyed) give(answer, result);
}

// It is as it was before the try. Who wanted it to go meanwhile has to wait for that now.
void Warden::revival_failed(Sandbox& sandbox) {
    if (Nest* nest = nests_.find(sandbox.nest)) Nests::free_slot(*nest, sandbox.slot);
    note(journal_.running(sandbox.plan.sandbox.view()));
    sandbox.state = State::Ended;
    sandbox.reviving = sandbox.doomed = false;
    sandbox.slot = 0;
    if (!sandbox.destroyed.empty())
        return fail(sandbox, make_error(ErrorKind::Cancelled, "the sandbox was deleted"));
    if (stopping_) sandboxes_.erase(Id(sandbox.plan.sandbox));
    nests_.retire_idle();
}

void Warden::processes_ended(Sandbox& sandbox, const os::ChildEnd& end) {
    sandbox.processes_gone = true;
    if (sandbox.doomed) return settle(sandbox);
    if (sandbox.state != State::Running) return;  // the end of its ready pipe tells why
    sandbox.state = State::Ended;
    log_warn("a sandbox ended by itself", {{"sandbox", std::string(sandbox.plan.sandbox.view())},
                                           {"signal", std::to_string(end.signal)},
                                           {"exit_code", std::to_string(end.exit_code)}});
    sandbox.end = {.sandbox = sandbox.plan.sandbox,
                   .signal = static_cast<uint32_t>(end.signal),
                   .exit_code = static_cast<uint32_t>(end.exit_code)};
    if (tell_ended_) tell_ended_(sandbox.end);
}

// --- Nests ---

// After the nest's first sandbox, which should not wait for it; and again if it died. Without one
// interpreters are started plainly.
void Warden::want_zygote(Nest& nest) {
    const int64_t now = steady_ms();
    if (nest.has_zygote || nest.retiring || stopping_) return;
    if (nest.zygote_ordered_ms != 0 && now - nest.zygote_ordered_ms < limits::kZygotePauseMs)
        return;
    auto socket = nest.process.socket.duplicate();
    if (!socket) return;
    nest.has_zygote = true;
    nest.zygote_ordered_ms = now;
    const JailPlan plan{.project = nest.entry.project,
                        .template_revision = nest.entry.template_revision};
    const jail::Placement placement{.nest = nest.id, .first_id = nest.ids.first(), .slot = 0};
    const auto held = std::make_shared<os::Fd>(std::move(*socket));
    helpers_.run(
        [this, plan, placement, held] { return jail::order_zygote(host_, plan, placement, *held); },
        [id = nest.id](const Result<void>& ordered) {
            if (!ordered) log_warn("no zygote", {{"nest", id}, {"error", ordered.error().message}});
        });
}

void Warden::watch_nest(Nest& nest) {
    nest.watched = true;
    poller_.watch(nest.process.pidfd.fd(), [this, id = nest.id] { nest_ended(*nests_.find(id)); });
    poller_.watch(nest.process.socket, [this, id = nest.id] { drain_reports(*nests_.find(id)); });
    poller_.watch(nest.process.log, [this, id = nest.id] { drain_log(*nests_.find(id)); });
}

void Warden::drain_reports(Nest& nest) {
    for (;;) {
        auto message = os::receive_with_fds(nest.process.socket, sizeof(jail::NestReport));
        if (!message && message.error().os_error == EAGAIN) return;
        // The reaper is dead; its pidfd tells.
        if (!message || message->bytes.empty()) return poller_.unwatch(nest.process.socket);
        nest_report(nest.id, std::move(*message));
    }
}

void Warden::nest_report(const std::string& nest, os::Received message) {
    jail::NestReport report;
    if (message.bytes.size() != sizeof(report)) return;
    std::memcpy(&report, message.bytes.data(), sizeof(report));
    if (report.kind == jail::NestReport::Born && message.fds.size() == 1) {
        return born(nest, report, std::move(message.fds.front()));
    }
    if (report.kind == jail::NestReport::ZygoteEnded) {
        nests_.find(nest)->has_zygote = false;
        log_warn("a zygote ended", {{"nest", nest}, {"signal", std::to_string(report.signal)}});
    }
    if (report.kind != jail::NestReport::Ended) return;
    for (auto& [id, sandbox] : sandboxes_) {
        if (sandbox.nest != nest || sandbox.nest_pid != report.pid || sandbox.processes_gone)
            continue;
        return processes_ended(
            sandbox, {.pid = report.pid, .exit_code = report.exit_code, .signal = report.signal});
    }
}

void Warden::born(const std::string& nest, const jail::NestReport& report, os::Fd pidfd) {
    const auto id =
        Id::from({report.sandbox.data(), strnlen(report.sandbox.data(), report.sandbox.size())});
    Sandbox* sandbox = id ? find(*id) : nullptr;
    if (sandbox == nullptr || sandbox->nest != nest) {
        // Given up before it was born: nobody waits for it.
        (void)os::Pidfd(std::move(pidfd)).signal(SIGKILL);
        return;
    }
    sandbox->init = os::Pidfd(std::move(pidfd));
    sandbox->nest_pid = report.pid;
    if (sandbox->doomed) (void)sandbox->init.signal(SIGKILL);
}

// Lines that the reaper or an agent wrote to its stderr, cut to a length.
void Warden::drain_log(Nest& nest) {
    std::array<char, 4096> chunk{};
    const ssize_t got = ::read(nest.process.log.get(), chunk.data(), chunk.size());
    if (got == 0) return poller_.unwatch(nest.process.log);
    if (got < 0) return;
    for (const char c : std::string_view(chunk.data(), static_cast<size_t>(got))) {
        if (c != '\n' && nest.log_line.size() < limits::kNestLogLine) nest.log_line += c;
        if (c != '\n') continue;
        log_info("a nest says", {{"nest", nest.id}, {"line", nest.log_line}});
        nest.log_line.clear();
    }
}

void Warden::nest_ended(Nest& nest) {
    const std::string id = nest.id;
    if (!nest.retiring) log_error("a nest died", {{"nest", id}});
    drain_reports(nest);
    drain_log(nest);
    poller_.unwatch(nest.process.pidfd.fd());
    poller_.unwatch(nest.process.socket);
    poller_.unwatch(nest.process.log);
    nests_.forget(id);
    for (auto& [sandbox_id, sandbox] : sandboxes_) {
        if (sandbox.nest == id && !sandbox.processes_gone) {
            processes_ended(sandbox, {.pid = 0, .exit_code = 0, .signal = SIGKILL});
        }
    }
    helpers_.run([this, id] { return jail::remove_nest_objects(host_, id); },
                 [this, id](const Result<void>& removed) {
                     if (removed) return note(journal_.nest_gone(id));
                     log_error("a nest's groups are still there",
                               {{"nest", id}, {"error", removed.error().message}});
                 });
}

// --- The rest ---

std::vector<Id> Warden::list() const {
    std::vector<Id> ids;
    ids.reserve(sandboxes_.size());
    for (const auto& [id, sandbox] : sandboxes_) ids.push_back(id);
    return ids;
}

std::vector<EndedEvent> Warden::ended() const {
    std::vector<EndedEvent> events;
    for (const auto& [id, sandbox] : sandboxes_) {
        if (sandbox.state != State::Ended) continue;
        events.push_back(sandbox.end);
        events.back().sandbox = id;
    }
    return events;
}

Result<UsageReply> Warden::usage(const Id& id) const {
    const auto found = sandboxes_.find(id);
    if (found == sandboxes_.end())
        return make_error(ErrorKind::NotFound, "the warden has no such sandbox");
    const std::string group = jail::user_group(found->second.nest, id.view());
    const os::CgroupTree& cgroups = host_.cgroups;
    const auto cpu = [&](std::string_view text) {
        return os::parse_cpu_usec(text, cgroups.format());
    };
    UsageReply usage{
        .cpu_ms = read_stat(cgroups, group, os::GroupStat::CpuUsage, cpu) / 1000,
        .memory_bytes = read_stat(cgroups, group, os::GroupStat::MemoryNow, os::parse_bytes),
        .pids = read_stat(cgroups, group, os::GroupStat::PidsNow, os::parse_bytes)};
    const auto files =
        host_.pool.directory(std::string(jail::kSandboxes) + "/" + std::string(id.view()));
    if (files) usage.disk_bytes = TRY(os::used_bytes(*files));
    return usage;
}

void Warden::grow_pool(uint64_t bytes, Answer answer) {
    if (pool_grows_) {
        return answer(make_error(ErrorKind::FailedPrecondition,
                                 "the pool grows already: try again when it has"));
    }
    pool_grows_ = true;
    helpers_.run([this, bytes] { return host_.pool.grow(bytes); },
                 [this, answer = std::move(answer)](const Result<void>& grown) {
                     pool_grows_ = false;
                     answer(grown);
                 });
}

void Warden::narrow(const NarrowRequest& request, Answer answer) {
    const Sandbox* sandbox = find(request.sandbox);
    if (sandbox == nullptr || sandbox->doomed || sandbox->state != State::Running) {
        return answer(make_error(ErrorKind::NotFound, "the warden runs no such sandbox"));
    }
    const auto wanted = narrowed(sandbox->plan, request.memory_max, request.pids_max);
    if (!wanted) return answer(wanted.error());
    limit_changes_.change(request.sandbox, jail::user_group(sandbox->nest, request.sandbox.view()),
                          *wanted, *narrowed(sandbox->plan, 0, 0), std::move(answer));
}

// --- Pause ---

void Warden::freeze(const FreezeRequest& request, Answer answer) {
    Sandbox* sandbox = find(request.sandbox);
    if (sandbox == nullptr || sandbox->doomed || sandbox->state != State::Running) {
        return answer(make_error(ErrorKind::NotFound, "the warden runs no such sandbox"));
    }
    const std::string group = jail::user_group(sandbox->nest, request.sandbox.view());
    const bool stop = request.frozen == 1;
    const auto done = stop ? host_.cgroups.freeze(group) : host_.cgroups.thaw(group);
    if (done) sandbox->frozen = stop;
    if (done && stop) page_out(*sandbox);
    if (done && !stop) (void)host_.cgroups.let_swap(group, os::CgroupTree::Swap::No);
    answer(done);
}

// In the background, as far as it stays frozen. What cannot be written to the swap stays in memory.
void Warden::page_out(const Sandbox& sandbox) {
    if (!os::has_swap()) return;
    const std::string group = jail::user_group(sandbox.nest, sandbox.plan.sandbox.view());
    (void)host_.cgroups.let_swap(group, os::CgroupTree::Swap::Yes);
    helpers_.run(
        [this, group]() -> Result<void> {
            const int64_t deadline = steady_ms() + kFrozenWaitMs;
            while (!host_.cgroups.frozen(group) && steady_ms() < deadline)
                std::this_thread::sleep_for(std::chrono::milliseconds(1));
            for (const pid_t process : host_.cgroups.processes(group)) {
                if (host_.cgroups.frozen(group)) (void)os::page_out(process);
            }
            return {};
        },
        [](const Result<void>&) {});
}

// What cgroup v1 has frozen cannot die.
void Warden::let_go(Sandbox& sandbox) {
    if (host_.cgroups.frozen_can_be_killed()) return;
    (void)host_.cgroups.thaw(jail::user_group(sandbox.nest, sandbox.plan.sandbox.view()));
}

// --- Revive ---

void Warden::revive(const Id& id, Answer answer) {
    const Sandbox* sandbox = find(id);
    if (sandbox == nullptr)
        return answer(make_error(ErrorKind::NotFound, "the warden has no such sandbox"));
    if (sandbox->state != State::Ended || sandbox->doomed || stopping_) {
        return answer(make_error(ErrorKind::FailedPrecondition,
                                 "only a sandbox that has ended can be started again"));
    }
    const auto begun = begin_again(sandbox->plan, sandbox->nest, answer);
    if (!begun) give(answer, begun);
}

Result<void> Warden::begin_again(const JailPlan& plan, const std::string& old_nest,
                                 Answer& answer) {
    os::Pipe ready = TRY(os::make_pipe());
    const Sandbox& ended = sandboxes_.at(plan.sandbox);
    if (Nest* old = nests_.find(old_nest); old != nullptr && ended.slot != 0)
        Nests::free_slot(*old, ended.slot);
    Nest* nest = TRY(home_for(plan));
    const uint32_t slot = Nests::take_slot(*nest);
    // A plan may be another object than the entry that is overwritten.
    const JailPlan own = plan;
    note(journal_.reviving(nest->id, slot, own));
    failpoint("warden:after_revival_journal");
    enter(own, *nest, slot, std::move(ready), answer);
    return {};
}

// The helper that enters the namespace sends the descriptors before it ends.
void Warden::network(const NetworkRequest& request, const PathAnswer& answer) {
    const Sandbox* sandbox = find(request.sandbox);
    if (sandbox == nullptr || sandbox->doomed || sandbox->state != State::Running) {
        return answer(make_error(ErrorKind::NotFound, "the warden runs no such sandbox"));
    }
    auto init = sandbox->init.fd().duplicate();
    auto pair = os::make_socket_pair(os::SocketKind::SeqPacket);
    if (!init) return answer(std::move(init).error());
    if (!pair) return answer(std::move(pair).error());
    const auto process = std::make_shared<const os::Pidfd>(std::move(*init));
    const auto ends = std::make_shared<const os::SocketPair>(std::move(*pair));
    helpers_.run(
        [process, ends, kind = request.kind]() -> Result<void> {
            const auto fds = TRY(jail::make_network_path(*process, kind));
            std::vector<int> numbers;
            for (const os::Fd& fd : fds) numbers.push_back(fd.get());
            return os::send_with_fds(ends->theirs, "path", numbers);
        },
        [ends, answer](const Result<void>& made) {
            if (!made) return answer(made.error());
            auto received = os::receive_with_fds(ends->ours, kPathMessageMax);
            if (!received) return answer(std::move(received).error());
            answer(std::move(received->fds));
        });
}

std::vector<Weigher::Running> Warden::running() const {
    std::vector<Weigher::Running> all;
    for (const auto& [id, sandbox] : sandboxes_) {
        if (sandbox.state == State::Running) all.push_back({.nest = sandbox.nest, .sandbox = id});
    }
    return all;
}

int Warden::check_deadlines() {
    const int64_t now = steady_ms();
    weigher_.tick(now);
    int64_t next = -1;
    if (const auto look = weigher_.next_look()) next = std::max<int64_t>(*look - now, 0);
    for (auto& [id, sandbox] : sandboxes_) {
        if (!sandbox.created) continue;
        if (sandbox.create_deadline_ms <= now) {
            fail(sandbox,
                 make_error(ErrorKind::DeadlineExceeded, "the sandbox was not ready in time"));
        } else if (next < 0 || sandbox.create_deadline_ms - now < next) {
            next = sandbox.create_deadline_ms - now;
        }
    }
    return static_cast<int>(next);
}

void Warden::stop() {
    stopping_ = true;
    for (auto& [id, sandbox] : sandboxes_) {
        // What is paused, or has no processes, keeps its files for the next warden.
        const bool ended = sandbox.state == State::Ended && !sandbox.doomed;
        const bool paused = sandbox.state == State::Running && sandbox.frozen && !sandbox.doomed;
        if (ended || paused) sandbox.reviving = true;
        fail(sandbox, make_error(ErrorKind::Cancelled, "the warden is stopping"));
    }
    for (Nest& nest : nests_.all()) Nests::kill(nest);
}

bool Warden::stopped() const {
    return sandboxes_.empty() && nests_.empty() && !helpers_.busy();
}

}  // namespace cloister::warden
