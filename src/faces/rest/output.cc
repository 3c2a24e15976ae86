// readOutput.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "faces/rest/body.h"
#include "faces/rest/byte_range.h"
#include "faces/rest/error_table.h"
#include "faces/rest/handlers.h"
#include "ops/read_output.h"

namespace cloister::rest {
namespace {

// The size of output that is still growing is not known: `*`.
std::string content_range(const Slice& slice, const engine::SpooledOutput& output) {
    const std::string all = output.goes_on ? "*" : std::to_string(output.size);
    return fmt::format("bytes {}-{}/{}", slice.offset, slice.offset + slice.length - 1, all);
}

http::Headers headers_of(const engine::SpooledOutput& output) {
    http::Headers headers{{"Accept-Ranges", "bytes"},
                          {"X-Output-Complete", output.goes_on ? "false" : "true"}};
    if (output.lost > 0) headers.emplace("X-Output-Lost", std::to_string(output.lost));
    return headers;
}

Answer not_satisfiable(const Call& call, const engine::SpooledOutput& output) {
    const Error error = make_error(
        ErrorKind::InvalidArgument,
        fmt::format("`Range` begins behind the {} bytes that there are{}", output.size,
                    output.goes_on ? " so far: ask again when the run has written more" : ""));
    http::Headers headers = headers_of(output);
    headers.emplace("Content-Range", fmt::format("bytes */{}", output.size));
    return {.status = 416,
            .body = error_body(error, call.request_id),
            .sent = Answer::Sent::No,
            .headers = std::move(headers)};
}

// A range is asked for when the size is known; what is there then stays there.
Task<Result<Answer>> send_range(Call& call, engine::OutputRange wanted, ByteRange range) {
    wanted.length = 0;
    const auto now = co_await ops::read_output(*call.engine, call.caller, wanted);
    if (!now) co_return now.error();
    const auto slice = slice_of(range, now->size);
    if (!slice) co_return not_satisfiable(call, *now);
    wanted.offset = slice->offset;
    wanted.length = slice->length;
    auto output = co_await ops::read_output(*call.engine, call.caller, std::move(wanted));
    if (!output) co_return std::move(output).error();
    http::Headers headers = headers_of(*output);
    headers.emplace("Content-Range", content_range(*slice, *output));
    engine::OpenFile bytes{.size = slice->length, .next = std::move(output->next)};
    co_return co_await send_file(call, std::move(bytes), 206, std::move(headers));
}

}  // namespace

Task<Result<Answer>> read_output(Call& call) {
    engine::OutputRange wanted{
        .run = call.parameters[0],
        .stream = http::query_value(call.request.query(), "stream").value_or("all")};
    const auto range = parse_range(call.request.header("Range"));
    if (range) co_return co_await send_range(call, std::move(wanted), *range);
    auto output = co_await ops::read_output(*call.engine, call.caller, std::move(wanted));
    if (!output) co_return std::move(output).error();
    http::Headers headers = headers_of(*output);
    engine::OpenFile bytes{.size = output->size, .next = std::move(output->next)};
    co_return co_await send_file(call, std::move(bytes), 200, std::move(headers));
}

}  // namespace cloister::rest
