// How the command line names a context: SANDBOX/CONTEXT, both ids.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace cloister::cli {

struct ContextName {
    std::string sandbox, context;
};

// InvalidArgument, with the way out, for anything else.
Result<ContextName> parse_context_name(std::string_view text);

}  // namespace cloister::cli
