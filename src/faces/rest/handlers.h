// The handler of each operation of contract/openapi.yaml: decode, call the operation, encode.
#pragma once

#include "faces/rest/call.h"

namespace cloister::rest {

Task<Result<Answer>> healthz(Call& call);
Task<Result<Answer>> readyz(Call& call);
Task<Result<Answer>> get_status(Call& call);
Task<Result<Answer>> get_pool(Call& call);
Task<Result<Answer>> get_capabilities(Call& call);
Task<Result<Answer>> get_limits(Call& call);

Task<Result<Answer>> create_sandbox(Call& call);
Task<Result<Answer>> list_sandboxes(Call& call);
Task<Result<Answer>> get_sandbox(Call& call);
Task<Result<Answer>> delete_sandbox(Call& call);

Task<Result<Answer>> get_network(Call& call);
Task<Result<Answer>> set_network(Call& call);
Task<Result<Answer>> get_network_log(Call& call);

Task<Result<Answer>> create_context(Call& call);
Task<Result<Answer>> list_contexts(Call& call);
Task<Result<Answer>> get_context(Call& call);
Task<Result<Answer>> restart_context(Call& call);
Task<Result<Answer>> delete_context(Call& call);

Task<Result<Answer>> create_run(Call& call);
Task<Result<Answer>> create_run_in_new_sandbox(Call& call);
Task<Result<Answer>> get_run(Call& call);
Task<Result<Answer>> stream_run_events(Call& call);
Task<Result<Answer>> read_output(Call& call);
Task<Result<Answer>> interrupt_run(Call& call);
Task<Result<Answer>> write_stdin(Call& call);
Task<Result<Answer>> read_artifact(Call& call);

Task<Result<Answer>> write_file(Call& call);
Task<Result<Answer>> read_file(Call& call);

Task<Result<Answer>> create_key(Call& call);
Task<Result<Answer>> list_keys(Call& call);
Task<Result<Answer>> revoke_key(Call& call);

}  // namespace cloister::rest
