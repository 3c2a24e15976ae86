#include "faces/rest/query.h"

#include <optional>
#include <string>

#include "base/number.h"

namespace cloister::rest {

Result<uint64_t> after_of(const Call& call) {
    std::optional<std::string> text = http::query_value(call.request.query(), "after");
    if (!text) text = std::string(call.request.header("Last-Event-ID"));
    if (text->empty() && call.request.query().find("after=") == std::string_view::npos) return 0;
    const auto number = whole_number<uint64_t>(*text);
    if (number) return *number;
    return make_error(ErrorKind::InvalidArgument,
                      "`after` in the query must be the number of an event: 0 or more");
}

Result<engine::StdinEnd> stdin_end_of(const Call& call) {
    const std::string eof = http::query_value(call.request.query(), "eof").value_or("false");
    if (eof == "true") return engine::StdinEnd::Yes;
    if (eof == "false") return engine::StdinEnd::No;
    return make_error(ErrorKind::InvalidArgument, "`eof` in the query must be true or false");
}

}  // namespace cloister::rest
