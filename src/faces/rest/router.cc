#include "faces/rest/router.h"

#include <array>
#include <optional>

#include "faces/rest/handlers.h"

namespace cloister::rest {
namespace {

constexpr std::array kRoutes = std::to_array<Route>({
    {"healthz", "GET", "/healthz", Key::NotNeeded, healthz},
    {"readyz", "GET", "/readyz", Key::NotNeeded, readyz},
    {"getStatus", "GET", "/v1/status", Key::Needed, get_status},
    {"getCapabilities", "GET", "/v1/capabilities", Key::Needed, get_capabilities},
    {"getLimits", "GET", "/v1/limits", Key::Needed, get_limits},
    {"getPool", "GET", "/v1/pool", Key::Needed, get_pool},
    {"createSandbox", "POST", "/v1/sandboxes", Key::Needed, create_sandbox},
    {"listSandboxes", "GET", "/v1/sandboxes", Key::Needed, list_sandboxes},
    {"getSandbox", "GET", "/v1/sandboxes/{sandbox_id}", Key::Needed, get_sandbox},
    {"deleteSandbox", "DELETE", "/v1/sandboxes/{sandbox_id}", Key::Needed, delete_sandbox},
    {"updateSandbox", "PATCH", "/v1/sandboxes/{sandbox_id}", Key::Needed, update_sandbox},
    {"pauseSandbox", "POST", "/v1/sandboxes/{sandbox_id}/pause", Key::Needed, pause_sandbox},
    {"resumeSandbox", "POST", "/v1/sandboxes/{sandbox_id}/resume", Key::Needed, resume_sandbox},
    {"streamSandboxEvents", "GET", "/v1/sandboxes/{sandbox_id}/events", Key::Needed,
     stream_sandbox_events},
    {"getNetwork", "GET", "/v1/sandboxes/{sandbox_id}/network", Key::Needed, get_network},
    {"setNetwork", "PUT", "/v1/sandboxes/{sandbox_id}/network", Key::Needed, set_network},
    {"getNetworkLog", "GET", "/v1/sandboxes/{sandbox_id}/network/log", Key::Needed,
     get_network_log},
    {"createContext", "POST", "/v1/sandboxes/{sandbox_id}/contexts", Key::Needed, create_context},
    {"listContexts", "GET", "/v1/sandboxes/{sandbox_id}/contexts", Key::Needed, list_contexts},
    {"getContext", "GET", "/v1/sandboxes/{sandbox_id}/contexts/{context_id}", Key::Needed,
     get_context},
    {"deleteContext", "DELETE", "/v1/sandboxes/{sandbox_id}/contexts/{context_id}", Key::Needed,
     delete_context},
    {"restartContext", "POST", "/v1/sandboxes/{sandbox_id}/contexts/{context_id}/restart",
     Key::Needed, restart_context},
    {"createRun", "POST", "/v1/sandboxes/{sandbox_id}/runs", Key::Needed, create_run},
    {"createProcess", "POST", "/v1/sandboxes/{sandbox_id}/processes", Key::Needed, create_process},
    {"listProcesses", "GET", "/v1/sandboxes/{sandbox_id}/processes", Key::Needed, list_processes},
    {"getProcess", "GET", "/v1/sandboxes/{sandbox_id}/processes/{process_id}", Key::Needed,
     get_process},
    {"deleteProcess", "DELETE", "/v1/sandboxes/{sandbox_id}/processes/{process_id}", Key::Needed,
     delete_process},
    {"streamProcessEvents", "GET", "/v1/sandboxes/{sandbox_id}/processes/{process_id}/events",
     Key::Needed, stream_process_events},
    {"attachProcess", "GET", "/v1/sandboxes/{sandbox_id}/processes/{process_id}/attach",
     Key::Needed, attach_process},
    {"writeProcessStdin", "POST", "/v1/sandboxes/{sandbox_id}/processes/{process_id}/stdin",
     Key::Needed, write_process_stdin},
    {"signalProcess", "POST", "/v1/sandboxes/{sandbox_id}/processes/{process_id}/signal",
     Key::Needed, signal_process},
    {"resizeTerminal", "POST", "/v1/sandboxes/{sandbox_id}/processes/{process_id}/resize",
     Key::Needed, resize_terminal},
    {"listPorts", "GET", "/v1/sandboxes/{sandbox_id}/ports", Key::Needed, list_ports},
    {"publishPort", "POST", "/v1/sandboxes/{sandbox_id}/ports", Key::Needed, publish_port},
    {"closePort", "DELETE", "/v1/sandboxes/{sandbox_id}/ports/{port}", Key::Needed, close_port},
    {"getFromPort", "GET", "/v1/sandboxes/{sandbox_id}/ports/{port}/{path}", Key::Wanted, use_port},
    {"putToPort", "PUT", "/v1/sandboxes/{sandbox_id}/ports/{port}/{path}", Key::Wanted, use_port},
    {"postToPort", "POST", "/v1/sandboxes/{sandbox_id}/ports/{port}/{path}", Key::Wanted, use_port},
    {"deleteFromPort", "DELETE", "/v1/sandboxes/{sandbox_id}/ports/{port}/{path}", Key::Wanted,
     use_port},
    {"patchToPort", "PATCH", "/v1/sandboxes/{sandbox_id}/ports/{port}/{path}", Key::Wanted,
     use_port},
    {"askPort", "OPTIONS", "/v1/sandboxes/{sandbox_id}/ports/{port}/{path}", Key::Wanted, use_port},
    {"writeFile", "PUT", "/v1/sandboxes/{sandbox_id}/files", Key::OrSignature, write_file},
    {"readFile", "GET", "/v1/sandboxes/{sandbox_id}/files", Key::OrSignature, read_file},
    {"uploadFiles", "POST", "/v1/sandboxes/{sandbox_id}/files", Key::Needed, upload_files},
    {"changeFile", "PATCH", "/v1/sandboxes/{sandbox_id}/files", Key::Needed, change_file},
    {"removeFile", "DELETE", "/v1/sandboxes/{sandbox_id}/files", Key::Needed, remove_file},
    {"statFile", "GET", "/v1/sandboxes/{sandbox_id}/files/stat", Key::Needed, stat_file},
    {"listFiles", "GET", "/v1/sandboxes/{sandbox_id}/files/list", Key::Needed, list_files},
    {"searchFiles", "GET", "/v1/sandboxes/{sandbox_id}/files/search", Key::Needed, search_files},
    {"watchFiles", "GET", "/v1/sandboxes/{sandbox_id}/files/watch", Key::Needed, watch_files},
    {"makeDirectory", "POST", "/v1/sandboxes/{sandbox_id}/files/mkdir", Key::Needed,
     make_directory},
    {"moveFile", "POST", "/v1/sandboxes/{sandbox_id}/files/move", Key::Needed, move_file},
    {"copyFile", "POST", "/v1/sandboxes/{sandbox_id}/files/copy", Key::Needed, copy_file},
    {"signFile", "POST", "/v1/sandboxes/{sandbox_id}/files/sign", Key::Needed, sign_file},
    {"packFiles", "GET", "/v1/sandboxes/{sandbox_id}/files/tar", Key::Needed, pack_files},
    {"unpackFiles", "PUT", "/v1/sandboxes/{sandbox_id}/files/tar", Key::Needed, unpack_files},
    {"createRunInNewSandbox", "POST", "/v1/runs", Key::Needed, create_run_in_new_sandbox},
    {"getRun", "GET", "/v1/runs/{run_id}", Key::Needed, get_run},
    {"streamRunEvents", "GET", "/v1/runs/{run_id}/events", Key::Needed, stream_run_events},
    {"readOutput", "GET", "/v1/runs/{run_id}/output", Key::Needed, read_output},
    {"interruptRun", "POST", "/v1/runs/{run_id}/interrupt", Key::Needed, interrupt_run},
    {"writeStdin", "POST", "/v1/runs/{run_id}/stdin", Key::Needed, write_stdin},
    {"readArtifact", "GET", "/v1/runs/{run_id}/artifacts/{index}", Key::Needed, read_artifact},
    {"createKey", "POST", "/v1/keys", Key::Needed, create_key},
    {"listKeys", "GET", "/v1/keys", Key::Needed, list_keys},
    {"revokeKey", "DELETE", "/v1/keys/{key_id}", Key::Needed, revoke_key},
});

// Takes the first part off "/a/b" → "a", leaving "/b". nullopt if there is none.
std::optional<std::string_view> next_part(std::string_view& path) {
    if (!path.starts_with('/')) return std::nullopt;
    path.remove_prefix(1);
    const std::string_view part = path.substr(0, path.find('/'));
    path.remove_prefix(part.size());
    return part;
}

std::optional<std::vector<std::string>> match(std::string_view pattern, std::string_view path) {
    std::vector<std::string> parameters;
    for (;;) {
        const auto wanted = next_part(pattern);
        if (wanted && *wanted == "{path}") {
            if (!path.starts_with('/')) return std::nullopt;
            return parameters;
        }
        const auto given = next_part(path);
        if (wanted.has_value() != given.has_value()) return std::nullopt;
        if (!wanted) return parameters;
        const bool any = wanted->starts_with('{');
        if (any ? given->empty() : *wanted != *given) return std::nullopt;
        if (any) parameters.emplace_back(*given);
    }
}

}  // namespace

std::span<const Route> routes() {
    return kRoutes;
}

std::variant<Match, NoSuchPath, OtherMethods> find_route(std::string_view method,
                                                         std::string_view path) {
    if (method == "HEAD") method = "GET";
    std::string allow;
    for (const Route& route : kRoutes) {
        auto parameters = match(route.pattern, path);
        if (!parameters) continue;
        if (route.method == method) return Match{&route, std::move(*parameters)};
        allow += (allow.empty() ? "" : ", ") + std::string(route.method);
    }
    if (allow.empty()) return NoSuchPath{};
    return OtherMethods{std::move(allow)};
}

}  // namespace cloister::rest
