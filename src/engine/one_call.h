// A run in a sandbox of its own: create, run, keep the artifacts, destroy. Once it has started it
// goes on to its end, whether or not anybody listens.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "engine/artifacts.h"
#include "engine/contexts.h"
#include "engine/runs.h"
#include "engine/sandboxes.h"
#include "wire/run_end.h"

namespace cloister::engine {

struct OneCallParts {
    std::shared_ptr<Sandboxes> sandboxes;
    std::shared_ptr<Contexts> contexts;
    std::shared_ptr<Runs> runs;
    std::shared_ptr<const Artifacts> artifacts;
};

struct OneCall {
    std::shared_ptr<Run> run;
    std::shared_ptr<Sandbox> sandbox;  // dies after the run's end, when the artifacts are kept
};

Task<Result<OneCall>> start_one_call(OneCallParts parts, std::string project, SandboxSpec sandbox,
                                     RunSpec run);

// What start_one_call has going on in the background, for a new server: waits for the run's end,
// then as below.
Task<void> finish_one_call(OneCallParts parts, OneCall call);
// Files that an ended run has listed.
struct Listed {
    std::string run;
    std::vector<Artifact> files;
};
// Keeps them, destroys the sandbox.
Task<void> end_one_call(OneCallParts parts, std::shared_ptr<Sandbox> sandbox, Listed listed);

}  // namespace cloister::engine
