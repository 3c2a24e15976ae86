// readFile, writeFile, uploadFiles, packFiles, unpackFiles.
#include <fmt/format.h>

#include <memory>
#include <utility>

#include "base/limits.h"
#include "faces/rest/body.h"
#include "faces/rest/byte_range.h"
#include "faces/rest/conditions.h"
#include "faces/rest/error_table.h"
#include "faces/rest/file_requests.h"
#include "faces/rest/handlers.h"
#include "faces/rest/upload.h"
#include "ops/pack_files.h"
#include "ops/read_file.h"
#include "ops/unpack_files.h"
#include "ops/upload_files.h"
#include "ops/write_file.h"

namespace cloister::rest {
namespace {

std::string quoted(const std::string& etag) {
    return fmt::format("\"{}\"", etag);
}

http::Headers version_headers(const engine::FileEntry& entry) {
    return {{"ETag", quoted(entry.etag)},
            {"Last-Modified", http_date(entry.modified_ms)},
            {"Accept-Ranges", "bytes"}};
}

// A stream whose first piece was taken to look at it.
struct Begun {
    engine::OpenFile file;
    std::string first;
    Task<Result<std::string>> next() {
        if (!first.empty()) co_return std::exchange(first, {});
        co_return co_await file.next();
    }
};

Answer refused(const Call& call, int status, const Error& error, http::Headers headers) {
    return {.status = status,
            .body = error_body(error, call.request_id),
            .sent = Answer::Sent::No,
            .headers = std::move(headers)};
}

Answer precondition_failed(const Call& call, std::string message) {
    return refused(call, 412, make_error(ErrorKind::FailedPrecondition, std::move(message)), {});
}

Answer not_satisfiable(const Call& call, const engine::OpenFile& file) {
    http::Headers headers = version_headers(*file.entry);
    headers.emplace("Content-Range", fmt::format("bytes */{}", file.size));
    const Error error =
        make_error(ErrorKind::InvalidArgument,
                   fmt::format("`Range` begins behind the {} bytes of the file", file.size));
    return refused(call, 416, error, std::move(headers));
}

Answer not_modified(http::Headers headers) {
    return {.status = 304, .body = {}, .sent = Answer::Sent::No, .headers = std::move(headers)};
}

Task<Answer> send_range(Call& call, engine::OpenFile file, Slice slice) {
    http::Headers headers = version_headers(*file.entry);
    headers.emplace("Content-Range", fmt::format("bytes {}-{}/{}", slice.offset,
                                                 slice.offset + slice.length - 1, file.size));
    file.offset = slice.offset;
    file.size = slice.length;
    co_return co_await send_file(call, std::move(file), 206, std::move(headers));
}

// A file that came as pieces. Without a size it is empty, or the kernel makes it up while it is
// read: the first piece tells.
Task<Answer> send_pieces(Call& call, engine::OpenFile file) {
    http::Headers headers = version_headers(*file.entry);
    if (file.size > 0) co_return co_await send_file(call, std::move(file), 200, std::move(headers));
    const auto begun = std::make_shared<Begun>(Begun{.file = std::move(file), .first = {}});
    auto first = co_await begun->file.next();
    if (first && first->empty())
        co_return co_await send_file(call, std::move(begun->file), 200, std::move(headers));
    if (first) begun->first = std::move(*first);
    const http::Headers plain{{"Content-Type", "application/octet-stream"}};
    co_return co_await send_stream(call, [begun] { return begun->next(); }, plain);
}

Task<Answer> send(Call& call, engine::OpenFile file) {
    const auto& headers = call.request.headers();
    const Version version{.etag = file.entry->etag, .modified_ms = file.entry->modified_ms};
    const Verdict verdict = judge(headers, version);
    if (verdict == Verdict::NotModified) co_return not_modified(version_headers(*file.entry));
    if (verdict == Verdict::Failed) {
        co_return precondition_failed(call, "the file is another than the one that was asked for");
    }
    if (!file.descriptor) co_return co_await send_pieces(call, std::move(file));
    const auto range = parse_range(call.request.header("Range"));
    if (!range || !range_holds(headers, version)) {
        http::Headers more = version_headers(*file.entry);
        co_return co_await send_file(call, std::move(file), 200, std::move(more));
    }
    const auto slice = slice_of(*range, file.size);
    if (!slice) co_return not_satisfiable(call, file);
    co_return co_await send_range(call, std::move(file), *slice);
}

json::object written_json(const ops::WrittenFile& file) {
    return {{"path", file.path}, {"size", file.size}};
}

bool has_conditions(const engine::WriteSettings& settings) {
    return settings.if_absent || !settings.if_match.empty();
}

}  // namespace

Task<Result<Answer>> read_file(Call& call) {
    const Result<ops::FileInput> input = file_input(call);
    if (!input) co_return input.error();
    auto file = co_await ops::read_file(*call.engine, call.caller, *input);
    if (!file) co_return std::move(file).error();
    co_return co_await send(call, std::move(*file));
}

Task<Result<Answer>> write_file(Call& call) {
    const Result<ops::FileInput> input = file_input(call);
    if (!input) co_return input.error();
    Result<engine::WriteSettings> settings = write_settings(call);
    if (!settings) co_return std::move(settings).error();
    auto source = upload_source(call);
    if (!source) co_return std::move(source).error();
    const bool conditional = has_conditions(*settings);
    const auto written = co_await ops::write_file(*call.engine, call.caller, *input,
                                                  std::move(*settings), std::move(*source));
    if (!written && conditional && written.error().kind == ErrorKind::FailedPrecondition)
        co_return precondition_failed(call, written.error().message);
    if (!written) co_return written.error();
    Answer answer = Answer::json(200, written_json(*written));
    answer.headers.emplace("ETag", quoted(written->entry.etag));
    co_return answer;
}

Task<Result<Answer>> upload_files(Call& call) {
    const Result<ops::FileInput> input = file_input(call, "/home/user");
    if (!input) co_return input.error();
    Result<engine::WriteSettings> settings = write_settings(call);
    if (!settings) co_return std::move(settings).error();
    auto files = incoming_files(call);
    if (!files) co_return std::move(files).error();
    const bool conditional = has_conditions(*settings);
    const auto written = co_await ops::upload_files(*call.engine, call.caller, *input,
                                                    std::move(*settings), std::move(*files));
    if (!written && conditional && written.error().kind == ErrorKind::FailedPrecondition)
        co_return precondition_failed(call, written.error().message);
    if (!written) co_return written.error();
    json::array list;
    for (const ops::WrittenFile& file : *written) list.push_back(written_json(file));
    co_return Answer::json(200, {{"files", std::move(list)}});
}

Task<Result<Answer>> pack_files(Call& call) {
    const Result<ops::FileInput> input = file_input(call);
    if (!input) co_return input.error();
    auto archive = co_await ops::pack_files(*call.engine, call.caller, *input);
    if (!archive) co_return std::move(archive).error();
    const http::Headers headers{{"Content-Type", "application/x-tar"}};
    co_return co_await send_stream(call, std::move(archive->next), headers);
}

Task<Result<Answer>> unpack_files(Call& call) {
    const Result<ops::FileInput> input = file_input(call);
    if (!input) co_return input.error();
    const Result<bool> durable = query_flag(call, "durable");
    if (!durable) co_return durable.error();
    auto source = archive_source(call);
    if (!source) co_return std::move(source).error();
    const auto sync = *durable ? engine::Sync::Yes : engine::Sync::No;
    const auto done =
        co_await ops::unpack_files(*call.engine, call.caller, *input, sync, std::move(*source));
    if (!done) co_return done.error();
    co_return Answer::json(200, {{"entries", done->entries}, {"bytes", done->bytes}});
}

}  // namespace cloister::rest
