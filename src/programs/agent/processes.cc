#include "programs/agent/processes.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "programs/agent/answers.h"

namespace cloister::agent {
namespace {

// A child counts as the agent's, whose number of processes is small, until it has moved to the
// group of the sandbox's programs.
constexpr size_t kStartingMax = 16;

}  // namespace

Result<void> Processes::start(Connection& client, const StartProcess& op, const StringMap& env) {
    if (find(op.process) != nullptr) {
        return make_error(ErrorKind::AlreadyExists,
                          fmt::format("the process {} has been started already", op.process));
    }
    if (running() + waiting_.size() >= limits::kProcessesMax) {
        return make_error(ErrorKind::ResourceExhausted,
                          fmt::format("{} processes run in this sandbox already, its limit: end "
                                      "some, or start several from one shell",
                                      limits::kProcessesMax));
    }
    if (starting() < kStartingMax) return begin(client, op, env);
    Waiting& waiting = waiting_.emplace_back(Waiting{.client = &client, .op = op, .env = env});
    client.on_frame = nullptr;
    client.on_input_end = nullptr;
    client.on_gone = [&waiting] { waiting.client = nullptr; };
    return {};
}

void Processes::begin_waiting() {
    while (!waiting_.empty() && starting() < kStartingMax) {
        const Waiting next = std::move(waiting_.front());
        if (next.client != nullptr) next.client->on_gone = nullptr;
        waiting_.pop_front();
        if (next.client == nullptr) continue;
        const auto begun = begin(*next.client, next.op, next.env);
        if (!begun) next.client->answer(error_answer(begun.error()));
    }
}

size_t Processes::starting() const {
    return static_cast<size_t>(
        std::ranges::count_if(processes_, [](const auto& process) { return process->starting(); }));
}

Result<void> Processes::begin(Connection& client, const StartProcess& op, const StringMap& env) {
    processes_.push_back(TRY(Process::start(op, env, parts_)));
    Process& process = *processes_.back();
    client.on_frame = nullptr;
    client.on_input_end = nullptr;
    client.on_gone = [&process] { process.on_started = nullptr; };
    process.on_started = [&client, &process](const Result<void>& result) {
        client.on_gone = nullptr;
        client.answer(result ? ok_answer(R"("process":)" + process.info())
                             : error_answer(result.error()));
        process.on_started = nullptr;
    };
    return {};
}

Process* Processes::find(std::string_view id) const {
    const auto found =
        std::ranges::find_if(processes_, [id](const auto& process) { return process->id() == id; });
    return found == processes_.end() || (*found)->never_ran() ? nullptr : found->get();
}

bool Processes::remove(std::string_view id) {
    const auto found =
        std::ranges::find_if(processes_, [id](const auto& process) { return process->id() == id; });
    if (found == processes_.end()) return false;
    (*found)->kill();
    removed_.splice(removed_.end(), processes_, found);
    return true;
}

std::string Processes::list() const {
    std::string list = "[";
    for (const auto& process : processes_) {
        if (process->never_ran() || process->starting()) continue;
        list += (list.size() > 1 ? "," : "") + process->info();
    }
    return list + "]";
}

size_t Processes::running() const {
    return static_cast<size_t>(
        std::ranges::count_if(processes_, [](const auto& process) { return process->running(); }));
}

std::vector<pid_t> Processes::leaders() const {
    std::vector<pid_t> out;
    for (const auto& process : processes_) {
        if (process->running() && process->pid() > 0) out.push_back(process->pid());
    }
    return out;
}

void Processes::on_child_end(const os::ChildEnd& end) {
    for (const auto* list : {&processes_, &removed_}) {
        for (const auto& process : *list) {
            if (process->running() && process->pid() == end.pid) {
                return process->on_child_end(end);
            }
        }
    }
}

std::optional<int64_t> Processes::next_deadline() const {
    std::optional<int64_t> next;
    for (const auto& process : processes_) {
        const auto deadline = process->next_deadline();
        if (deadline) next = std::min(next.value_or(INT64_MAX), *deadline);
    }
    return next;
}

void Processes::tick(int64_t now_ms) {
    for (const auto& process : processes_) process->tick(now_ms);
}

void Processes::tend() {
    for (const auto& process : processes_) process->tend();
    for (const auto& process : removed_) process->tend();
    std::erase_if(processes_, [](const auto& process) { return process->never_ran(); });
    std::erase_if(removed_, [](const auto& process) {
        return !process->running() && !process->has_readers();
    });
    forget_surplus();
    begin_waiting();
}

void Processes::forget_surplus() {
    size_t ended = processes_.size() - running();
    std::erase_if(processes_, [&ended](const auto& process) {
        const bool goes =
            ended > limits::kProcessesKept && !process->running() && !process->has_readers();
        if (goes) --ended;
        return goes;
    });
}

bool Processes::drop_oldest() {
    for (const auto& process : processes_) {
        if (process->running() || process->output().segments() == 0) continue;
        process->output().drop_all();
        return true;
    }
    return std::ranges::any_of(
        processes_, [](const auto& process) { return process->output().drop_oldest_segment(); });
}

}  // namespace cloister::agent
