// What the kernel of this host is and can do, as far as `doctor` and capabilities tell it.
#pragma once

#include <cstdint>
#include <string>

namespace cloister::os {

// "6.1.0-18-amd64"; empty if the kernel does not say.
std::string kernel_release();
// Its first two numbers are at least these.
bool kernel_at_least(const std::string& release, int major, int minor);
// The version of Landlock's interface; 0: the kernel has none, or it is off.
uint32_t landlock_abi();
bool has_seccomp_filters();
// How many user namespaces may be made; 0: none.
uint64_t user_namespaces_max();
// The kernel tells when something waits for a CPU.
bool has_cpu_pressure();

}  // namespace cloister::os
