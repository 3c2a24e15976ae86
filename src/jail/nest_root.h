// The reaper's own root: a tiny read-only file system with the nest's /proc and a few device nodes.
// Each sandbox's mount namespace begins as a copy of this one, so it is kept small, and nothing of
// the host is in it.
#pragma once

#include <array>

#include "base/result.h"

namespace cloister::jail {

// Device nodes that a sandbox gets.
inline constexpr std::array kNestDevices = {"null", "zero", "full", "random", "urandom", "tty"};
// An empty directory where a sandbox attaches its root.
inline constexpr const char* kNestRootPlace = "/root";

// Run by the reaper as its first act, inside its fresh mount and pid namespaces.
Result<void> enter_nest_root();

}  // namespace cloister::jail
