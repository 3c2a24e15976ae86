#include "programs/agent/answers.h"

#include <fmt/format.h>

#include "base/log.h"

namespace cloister::agent {

std::string ok_answer(std::string_view fields) {
    return fmt::format(R"({{"ok":true{}{}}})", fields.empty() ? "" : ",", fields);
}

std::string error_answer(const Error& error) {
    return fmt::format(R"({{"ok":false,"error":{{"kind":"{}","message":{},"os_error":{}}}}})",
                       to_string(error.kind), json_quote(error.message), error.os_error);
}

}  // namespace cloister::agent
