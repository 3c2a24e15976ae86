#include "faces/rest/upload.h"

#include <fmt/format.h>

#include <memory>
#include <utility>

#include "base/limits.h"
#include "faces/rest/body.h"
#include "http/gzip.h"
#include "wire/file_limits.h"
#include "wire/multipart.h"

namespace cloister::rest {
namespace {

constexpr std::string_view kGzipMagic = "\x1f\x8b";

enum class Packed { No, Yes, Ask };  // Ask: look at the first bytes

Error about_body(Error error) {
    error.field = "body";
    return error;
}

// Pieces of a body, unpacked if it is packed.
struct Unpacking {
    engine::ByteSource source;
    Packed packed = Packed::No;
    http::Inflater inflater{limits::kInflateFree, limits::kInflateRatioMax};
    uint64_t left = limits::kUploadMax;

    Task<Result<std::string>> next() {
        for (;;) {
            if (packed == Packed::Yes) {
                Result<std::string> piece = inflater.next();
                if (!piece) co_return about_body(std::move(piece).error());
                if (!piece->empty()) co_return counted(std::move(*piece));
            }
            Result<std::string> raw = co_await source();
            if (!raw) co_return raw;
            if (packed == Packed::Ask)
                packed = raw->starts_with(kGzipMagic) ? Packed::Yes : Packed::No;
            if (packed == Packed::No) co_return raw;
            if (raw->empty() && inflater.finished()) co_return std::string();
            if (raw->empty()) {
                co_return invalid_field("body", "the compressed body broke off: send all of it");
            }
            inflater.feed(std::move(*raw));
        }
    }
    Result<std::string> counted(std::string piece) {
        if (piece.size() > left) {
            return make_error(
                ErrorKind::TooLarge,
                fmt::format("the body is over the limit of {} bytes", limits::kUploadMax));
        }
        left -= piece.size();
        return piece;
    }
};

Result<void> check_length(const Call& call) {
    if (call.request.content_length().value_or(0) <= limits::kUploadMax) return {};
    return make_error(ErrorKind::TooLarge,
                      fmt::format("an upload may have at most {} bytes", limits::kUploadMax));
}

Result<Packed> coding_of(const Call& call) {
    const std::string_view coding = call.request.header("Content-Encoding");
    if (coding.empty() || coding == "identity") return Packed::No;
    if (coding == "gzip" || coding == "x-gzip" || coding == "deflate") return Packed::Yes;
    return invalid_field("Content-Encoding", "`Content-Encoding` may be gzip, deflate or identity");
}

engine::ByteSource unpacked(Call& call, Packed packed) {
    const auto unpacking = std::make_shared<Unpacking>();
    unpacking->source = body_source(call, limits::kUploadMax);
    unpacking->packed = packed;
    return [unpacking] { return unpacking->next(); };
}

// The parts of a body, one after another.
struct Parts {
    engine::ByteSource source;
    MultipartDecoder decoder;

    Task<Result<std::optional<MultipartEvent>>> next() {
        for (;;) {
            auto event = decoder.next();
            if (!event || *event) co_return event;
            if (decoder.ended()) co_return std::optional<MultipartEvent>();
            Result<std::string> bytes = co_await source();
            if (!bytes) co_return std::move(bytes).error();
            if (bytes->empty()) {
                co_return make_error(ErrorKind::InvalidArgument,
                                     "the body ended before its last boundary");
            }
            decoder.feed(*bytes);
        }
    }
    // Of the part whose head came last; empty at its end.
    Task<Result<std::string>> content() {
        auto event = co_await next();
        if (!event) co_return std::move(event).error();
        if (*event && std::holds_alternative<PartContent>(**event))
            co_return std::move(std::get<PartContent>(**event).bytes);
        co_return std::string();
    }
};

Task<Result<std::optional<ops::IncomingFile>>> next_file(std::shared_ptr<Parts> parts) {
    for (;;) {
        auto event = co_await parts->next();
        if (!event) co_return std::move(event).error();
        if (!*event) {
            // What follows the last boundary is nobody's, but it has to be read.
            for (;;) {
                const auto rest = co_await parts->source();
                if (!rest || rest->empty()) co_return std::optional<ops::IncomingFile>();
            }
        }
        auto* head = std::get_if<PartHead>(&**event);
        if (head == nullptr) continue;
        if (!head->filename || head->filename->empty()) {
            co_return invalid_field("file", fmt::format("the part `{}` has no filename, which is "
                                                        "the path of its file",
                                                        head->name));
        }
        ops::IncomingFile file{.path = std::move(*head->filename),
                               .source = [parts] { return parts->content(); }};
        co_return std::optional(std::move(file));
    }
}

}  // namespace

Result<engine::ByteSource> upload_source(Call& call) {
    TRY_OK(check_length(call));
    const Packed packed = TRY(coding_of(call));
    if (packed == Packed::No) return body_source(call, limits::kUploadMax);
    return unpacked(call, packed);
}

Result<engine::ByteSource> archive_source(Call& call) {
    TRY_OK(check_length(call));
    const Packed packed = TRY(coding_of(call));
    return unpacked(call, packed == Packed::No ? Packed::Ask : packed);
}

Result<ops::IncomingFiles> incoming_files(Call& call) {
    MultipartDecoder decoder = TRY(MultipartDecoder::create(call.request.header("Content-Type")));
    engine::ByteSource source = TRY(upload_source(call));
    const auto parts = std::make_shared<Parts>(Parts{std::move(source), std::move(decoder)});
    return [parts] { return next_file(parts); };
}

}  // namespace cloister::rest
