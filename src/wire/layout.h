// Where things stand in the data directory. Host names derive from ids, so that a sweep finds
// leftovers.
//
//     DATA/pool.img                 the btrfs pool (root)
//     DATA/client.json              URL and key for the CLI (0600, of the user who set it up)
//     DATA/state/                   cloister.db, artifacts/ (of cloisterd's user, 0700)
//     DATA/state/egress.sock        cloisterd → egress
//     DATA/warden.journal           the warden's book of host objects
//     DATA/run/warden.sock          cloisterd → warden
//     DATA/run/warden.lock          held by the one warden of this data directory
//     DATA/run/pool/                the mounted pool, seen by the warden only
//     DATA/run/layers/              an overlay's layers, while the overlay is made
//     DATA/run/agents/SANDBOX.sock  cloisterd → agent
//     DATA/run/nests/NEST.sock      warden → reaper (root)
//     DATA/run/service.json         pids of the running service (of `cloister serve`)
//     DATA/log/                     JSON logs of a detached service
#pragma once

#include <string>
#include <string_view>

namespace cloister::layout {

inline constexpr std::string_view kDefaultData = "/var/lib/cloister";
// The operator's certificates, in the runtime; a sandbox sees them below /opt/cloister.
inline constexpr const char* kCaBundle = "etc/ca-bundle.pem";

inline std::string join(std::string_view directory, std::string_view name) {
    return std::string(directory) + "/" + std::string(name);
}
inline std::string pool_image(std::string_view data) {
    return join(data, "pool.img");
}
inline std::string client_file(std::string_view data) {
    return join(data, "client.json");
}
inline std::string state_directory(std::string_view data) {
    return join(data, "state");
}
inline std::string egress_socket(std::string_view data) {
    return join(data, "state/egress.sock");
}
inline std::string run_directory(std::string_view data) {
    return join(data, "run");
}
inline std::string warden_socket(std::string_view data) {
    return join(data, "run/warden.sock");
}
inline std::string warden_journal(std::string_view data) {
    return join(data, "warden.journal");
}
inline std::string warden_lock(std::string_view data) {
    return join(data, "run/warden.lock");
}
inline std::string pool_directory(std::string_view data) {
    return join(data, "run/pool");
}
inline std::string layers_directory(std::string_view data) {
    return join(data, "run/layers");
}
inline std::string service_file(std::string_view data) {
    return join(data, "run/service.json");
}
inline std::string agents_directory(std::string_view data) {
    return join(data, "run/agents");
}
inline std::string nests_directory(std::string_view data) {
    return join(data, "run/nests");
}
inline std::string nest_socket(std::string_view data, std::string_view nest) {
    return nests_directory(data) + "/" + std::string(nest) + ".sock";
}
inline std::string agent_socket(std::string_view data, std::string_view sandbox) {
    return agents_directory(data) + "/" + std::string(sandbox) + ".sock";
}

}  // namespace cloister::layout
