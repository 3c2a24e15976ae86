// writeFile, readFile.
#include <fmt/format.h>

#include <utility>

#include "base/limits.h"
#include "faces/rest/body.h"
#include "faces/rest/handlers.h"
#include "ops/read_file.h"
#include "ops/write_file.h"

namespace cloister::rest {
namespace {

Result<ops::FileInput> input_of(const Call& call) {
    const auto path = http::query_value(call.request.query(), "path");
    if (!path) {
        return invalid_field("path",
                             "`path` is required in the query, percent-encoded and without NUL");
    }
    return ops::FileInput{.sandbox_id = call.parameters[0], .path = *path};
}

Result<void> check_length(const Call& call) {
    if (call.request.content_length().value_or(0) <= limits::kUploadMax) return {};
    return make_error(ErrorKind::TooLarge,
                      fmt::format("an upload may have at most {} bytes", limits::kUploadMax));
}

}  // namespace

Task<Result<Answer>> write_file(Call& call) {
    const Result<ops::FileInput> input = input_of(call);
    if (!input) co_return input.error();
    const Result<void> fits = check_length(call);
    if (!fits) co_return fits.error();
    const auto written = co_await ops::write_file(*call.engine, call.caller, *input,
                                                  body_source(call, limits::kUploadMax));
    if (!written) co_return written.error();
    co_return Answer::json(200, {{"path", written->path}, {"size", written->size}});
}

Task<Result<Answer>> read_file(Call& call) {
    const Result<ops::FileInput> input = input_of(call);
    if (!input) co_return input.error();
    auto file = co_await ops::read_file(*call.engine, call.caller, *input);
    if (!file) co_return std::move(file).error();
    co_return co_await send_file(call, std::move(*file));
}

}  // namespace cloister::rest
