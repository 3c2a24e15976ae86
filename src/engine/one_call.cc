#include "engine/one_call.h"

#include <utility>

#include "base/log.h"
#include "engine/files.h"

namespace cloister::engine {
namespace {

// A file that cannot be kept (removed meanwhile, too large) is only left out: its URL answers 404
// and says so.
Task<void> keep_artifacts(const Artifacts& artifacts, const Sandbox& sandbox,
                          const Listed& listed) {
    uint64_t left = limits::kArtifactKeepBytes;
    for (size_t index = 0; index < listed.files.size(); ++index) {
        if (listed.files[index].size > left) continue;
        FileTarget target{.path = listed.files[index].path};
        Result<OpenFile> file = co_await read_file(sandbox.agent_socket(), std::move(target));
        if (!file) continue;
        const auto size = co_await artifacts.keep(listed.run, index, std::move(*file), left);
        if (size) left -= *size;
    }
}

}  // namespace

Task<void> finish_one_call(OneCallParts parts, OneCall call) {
    const Sandbox::Use use(call.sandbox);
    while (!call.run->ended()) co_await call.run->end_signal().wait();
    Listed listed{.run = call.run->id(), .files = call.run->end_value().artifacts};
    co_await end_one_call(std::move(parts), call.sandbox, std::move(listed));
}

Task<void> end_one_call(OneCallParts parts, std::shared_ptr<Sandbox> sandbox, Listed listed) {
    const Sandbox::Use use(sandbox);
    if (!sandbox->death()) co_await keep_artifacts(*parts.artifacts, *sandbox, listed);
    co_await Sandboxes::destroy(
        parts.sandboxes, sandbox,
        {.reason = EndReason::Cancelled, .message = "its only run has ended", .why = "run_ended"});
}

Task<Result<OneCall>> start_one_call(OneCallParts parts, std::string project, SandboxSpec sandbox,
                                     RunSpec run) {
    sandbox.life = SandboxSpec::Life::OneRun;
    const auto made = co_await parts.sandboxes->create(std::move(project), std::move(sandbox));
    if (!made) co_return made.error();
    const auto started = parts.runs->start(*made, std::move(run));
    if (!started) {
        co_await Sandboxes::destroy(parts.sandboxes, *made,
                                    {.message = "its run could not be started"});
        co_return started.error();
    }
    OneCall call{.run = *started, .sandbox = *made};
    spawn(finish_one_call(parts, call));
    co_return call;
}

}  // namespace cloister::engine
