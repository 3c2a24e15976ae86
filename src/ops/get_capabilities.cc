#include "ops/get_capabilities.h"

#include "os/host_facts.h"

namespace cloister::ops {

Task<Result<Capabilities>> get_capabilities(engine::Engine& engine) {
    const auto host = co_await engine.warden().hello();
    if (!host) co_return host.error();
    const std::string release = os::kernel_release();
    KernelFacts kernel{
        .release = release,
        .new_enough = os::kernel_at_least(release, kKernelFloorMajor, kKernelFloorMinor),
        .user_namespaces = os::user_namespaces_max(),
        .seccomp = os::has_seccomp_filters(),
        .landlock = host->landlock,
        .cpu_pressure = os::has_cpu_pressure()};
    co_return Capabilities{.host = *host,
                           .kernel = std::move(kernel),
                           .carries_network = engine.egress().is_connected()};
}

}  // namespace cloister::ops
