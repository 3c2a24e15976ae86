#include "engine/one_call.h"

#include <utility>

#include "base/log.h"
#include "engine/files.h"

namespace cloister::engine {
namespace {

// A file that cannot be kept (removed meanwhile, too large) is only left out: its URL answers 404
// and says so.
Task<void> keep_artifacts(const Artifacts& artifacts, const Sandbox& sandbox, const Run& run) {
    uint64_t left = limits::kArtifactKeepBytes;
    for (size_t index = 0; index < run.end_value().artifacts.size(); ++index) {
        const Artifact& listed = run.end_value().artifacts[index];
        if (listed.size > left) continue;
        Result<OpenFile> file = co_await read_file(sandbox.agent_socket(), listed.path);
        if (!file) continue;
        const auto size = co_await artifacts.keep(run.id(), index, std::move(*file), left);
        if (size) left -= *size;
    }
}

Task<void> finish(OneCallParts parts, std::shared_ptr<Sandbox> sandbox, std::shared_ptr<Run> run) {
    {
        const Sandbox::Use use(sandbox);
        while (!run->ended()) co_await run->end_signal().wait();
        if (!sandbox->death()) co_await keep_artifacts(*parts.artifacts, *sandbox, *run);
    }
    co_await Sandboxes::destroy(
        parts.sandboxes, sandbox,
        {.reason = EndReason::Cancelled, .message = "its only run has ended"});
}

}  // namespace

Task<Result<OneCall>> start_one_call(OneCallParts parts, std::string project, SandboxSpec sandbox,
                                     RunSpec run) {
    const auto made = co_await parts.sandboxes->create(std::move(project), std::move(sandbox));
    if (!made) co_return made.error();
    const auto started = parts.runs->start(*made, std::move(run));
    if (!started) {
        co_await Sandboxes::destroy(parts.sandboxes, *made,
                                    {.message = "its run could not be started"});
        co_return started.error();
    }
    spawn(finish(parts, *made, *started));
    co_return OneCall{.run = *started, .sandbox = *made};
}

}  // namespace cloister::engine
