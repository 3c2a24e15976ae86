#include "faces/rest/body.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "base/limits.h"

namespace cloister::rest {
namespace {

struct Upload {
    http::Request& request;
    uint64_t left;
    uint64_t max_bytes;

    Task<Result<std::string>> next() {
        Result<std::string> piece = co_await request.read_some(limits::kStreamChunk);
        if (!piece) co_return piece;
        if (piece->size() > left) {
            co_return make_error(ErrorKind::TooLarge,
                                 fmt::format("the body is over the limit of {} bytes", max_bytes));
        }
        left -= piece->size();
        co_return piece;
    }
};

}  // namespace

Task<Result<std::string>> json_body(Call& call) {
    co_return co_await call.request.read_body(limits::kJsonBodyMax);
}

engine::ByteSource body_source(Call& call, uint64_t max_bytes) {
    const auto upload = std::make_shared<Upload>(call.request, max_bytes, max_bytes);
    return [upload] { return upload->next(); };
}

namespace {

Task<Result<void>> send_pieces(http::Response& response, engine::OpenFile& file) {
    uint64_t left = file.size;
    while (left > 0) {
        Result<std::string> piece = co_await file.next();
        if (!piece) co_return std::move(piece).error();
        if (piece->empty()) co_return make_error(ErrorKind::Unavailable, "the file broke off");
        piece->resize(std::min<uint64_t>(piece->size(), left));  // it may have grown meanwhile
        left -= piece->size();
        const Result<void> sent = co_await response.write(std::move(*piece));
        if (!sent) co_return sent;
    }
    co_return Result<void>{};
}

}  // namespace

Task<Answer> send_file(Call& call, engine::OpenFile file, int status, http::Headers more) {
    http::Headers headers{{"Content-Type", "application/octet-stream"},
                          {"Cache-Control", "no-store"},
                          {"X-Content-Type-Options", "nosniff"}};
    for (const auto& [name, value] : more) headers.erase(name);
    headers.merge(more);
    Result<void> sent = co_await call.response.start(status, std::move(headers), file.size);
    if (sent && file.descriptor) {
        sent = co_await call.response.write_file(*file.descriptor, file.offset, file.size);
    } else if (sent) {
        sent = co_await send_pieces(call.response, file);
    }
    if (sent) {
        (void)co_await call.response.finish();  // a reader that is gone does not miss it
    } else {
        call.response.abort();
    }
    co_return Answer::streamed(status);
}

Task<Answer> send_stream(Call& call, engine::ByteSource next, http::Headers headers) {
    headers.emplace("Cache-Control", "no-store");
    headers.emplace("X-Content-Type-Options", "nosniff");
    Result<void> sent = co_await call.response.start(200, std::move(headers));
    while (sent) {
        Result<std::string> piece = co_await next();
        if (!piece) break;
        if (piece->empty()) {
            (void)co_await call.response.finish();  // as above
            co_return Answer::streamed(200);
        }
        sent = co_await call.response.write(std::move(*piece));
    }
    call.response.abort();
    co_return Answer::streamed(200);
}

}  // namespace cloister::rest
