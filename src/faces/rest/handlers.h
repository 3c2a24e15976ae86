// The handler of each operation of contract/openapi.yaml: decode, call the operation, encode.
#pragma once

#include "faces/rest/call.h"
#include "faces/rest/port_address.h"

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
Task<Result<Answer>> update_sandbox(Call& call);
Task<Result<Answer>> pause_sandbox(Call& call);
Task<Result<Answer>> resume_sandbox(Call& call);
Task<Result<Answer>> stream_sandbox_events(Call& call);

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

Task<Result<Answer>> create_process(Call& call);
Task<Result<Answer>> list_processes(Call& call);
Task<Result<Answer>> get_process(Call& call);
Task<Result<Answer>> delete_process(Call& call);
Task<Result<Answer>> stream_process_events(Call& call);
Task<Result<Answer>> attach_process(Call& call);
Task<Result<Answer>> write_process_stdin(Call& call);
Task<Result<Answer>> signal_process(Call& call);
Task<Result<Answer>> resize_terminal(Call& call);

Task<Result<Answer>> list_ports(Call& call);
Task<Result<Answer>> publish_port(Call& call);
Task<Result<Answer>> close_port(Call& call);
Task<Result<Answer>> use_port(Call& call);
enum class PortRoute { Path, Host };
// Also for a call without a caller: the port must be published then.
Task<Result<Answer>> pass_to_port(Call& call, PortAddress address, PortRoute route);

Task<Result<Answer>> write_file(Call& call);
Task<Result<Answer>> read_file(Call& call);
Task<Result<Answer>> upload_files(Call& call);
Task<Result<Answer>> change_file(Call& call);
Task<Result<Answer>> remove_file(Call& call);
Task<Result<Answer>> stat_file(Call& call);
Task<Result<Answer>> list_files(Call& call);
Task<Result<Answer>> search_files(Call& call);
Task<Result<Answer>> watch_files(Call& call);
Task<Result<Answer>> make_directory(Call& call);
Task<Result<Answer>> move_file(Call& call);
Task<Result<Answer>> copy_file(Call& call);
Task<Result<Answer>> sign_file(Call& call);
Task<Result<Answer>> pack_files(Call& call);
Task<Result<Answer>> unpack_files(Call& call);

Task<Result<Answer>> create_key(Call& call);
Task<Result<Answer>> list_keys(Call& call);
Task<Result<Answer>> revoke_key(Call& call);

}  // namespace cloister::rest
