// The limits of this service, which are those of every Cloister of this version.
#pragma once

#include <span>

#include "base/limit_table.h"

namespace cloister::ops {

inline std::span<const LimitRow> get_limits() {
    return limit_table();
}

}  // namespace cloister::ops
