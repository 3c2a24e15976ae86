#include "wire/warden.h"

#include <algorithm>
#include <cstring>
#include <type_traits>

#include "base/limits.h"

namespace cloister::warden {
namespace {

struct Header {
    uint32_t version = kProtocolVersion;
    uint32_t kind = 0;  // index in the variant
    uint32_t size = 0;  // of the struct behind it
    uint32_t reserved = 0;
};

template <class Variant>
std::string encode_variant(const Variant& message) {
    return std::visit(
        [&](const auto& body) {
            static_assert(std::is_trivially_copyable_v<std::decay_t<decltype(body)>>);
            Header header{.kind = static_cast<uint32_t>(message.index()), .size = sizeof(body)};
            std::string out(sizeof(header) + sizeof(body), '\0');
            std::memcpy(out.data(), &header, sizeof(header));
            std::memcpy(out.data() + sizeof(header), &body, sizeof(body));
            return out;
        },
        message);
}

Error malformed() {
    return make_error(ErrorKind::InvalidArgument, "a malformed warden message");
}

// Tries the alternatives of the variant one after another: the one that the header names is copied
// out.
template <class Variant, size_t Index = 0>
Result<Variant> decode_variant(const Header& header, std::string_view body) {
    if constexpr (Index == std::variant_size_v<Variant>) {
        return malformed();
    } else {
        using Body = std::variant_alternative_t<Index, Variant>;
        if (header.kind != Index) return decode_variant<Variant, Index + 1>(header, body);
        if (header.size != sizeof(Body) || body.size() != sizeof(Body)) return malformed();
        Body out;
        std::memcpy(&out, body.data(), sizeof(Body));
        return Variant(std::in_place_index<Index>, out);
    }
}

template <class Variant>
Result<Variant> decode_message(std::string_view bytes) {
    Header header;
    if (bytes.size() < sizeof(header)) return malformed();
    std::memcpy(&header, bytes.data(), sizeof(header));
    if (header.version != kProtocolVersion) {
        return make_error(ErrorKind::FailedPrecondition,
                          "warden and server are of different versions: restart the service");
    }
    if (header.reserved != 0) return malformed();
    return decode_variant<Variant>(header, bytes.substr(sizeof(header)));
}

bool in_range(uint64_t value, uint64_t low, uint64_t high) {
    return value >= low && value <= high;
}

bool valid(const JailPlan& plan) {
    return is_id(plan.sandbox.view()) && is_id(plan.project.view()) &&
           is_id(plan.template_revision.view()) && in_range(plan.cpu, 1, limits::kSandboxCpuMax) &&
           in_range(plan.memory_max, limits::kSandboxMemoryMin, limits::kSandboxMemoryMax) &&
           in_range(plan.disk_max, limits::kMiB, limits::kPoolDefaultMax) &&
           in_range(plan.pids_max, 1, limits::kSandboxPidsDefault) && plan.root_allowed <= 1;
}

bool valid(const NarrowRequest& request) {
    return is_id(request.sandbox.view()) &&
           (request.memory_max == 0 || request.memory_max >= limits::kRunMemoryMin);
}

bool valid(const NetworkRequest& request) {
    return is_id(request.sandbox.view()) && request.kind <= PathKind::TcpUdp;
}

bool valid(const Request& request) {
    return std::visit(
        [](const auto& body) {
            using Body = std::decay_t<decltype(body)>;
            if constexpr (std::is_same_v<Body, CreateRequest>) {
                return valid(body.plan);
            } else if constexpr (std::is_same_v<Body, NarrowRequest> ||
                                 std::is_same_v<Body, NetworkRequest>) {
                return valid(body);
            } else if constexpr (std::is_same_v<Body, FreezeRequest>) {
                return is_id(body.sandbox.view()) && body.frozen <= 1;
            } else if constexpr (requires { body.sandbox; }) {
                return is_id(body.sandbox.view());
            } else {
                return true;
            }
        },
        request);
}

}  // namespace

Result<Id> Id::from(std::string_view text) {
    if (!is_id(text)) return make_error(ErrorKind::InvalidArgument, "not an id");
    Id id;
    std::ranges::copy(text, id.text.begin());
    return id;
}

std::string encode(const Request& request) {
    return encode_variant(request);
}
std::string encode(const Reply& reply) {
    return encode_variant(reply);
}

Result<Request> decode_request(std::string_view bytes) {
    Request request = TRY(decode_message<Request>(bytes));
    if (!valid(request)) return malformed();
    return request;
}

Result<Reply> decode_reply(std::string_view bytes) {
    return decode_message<Reply>(bytes);
}

DoneReply done(uint64_t tag, const Result<void>& result) {
    DoneReply reply{.tag = tag};
    if (result) return reply;
    const Error& error = result.error();
    reply.status = static_cast<uint32_t>(error.kind) + 1;
    reply.os_error = error.os_error;
    const size_t length = std::min(error.message.size(), reply.message.size() - 1);
    std::ranges::copy(std::string_view(error.message).substr(0, length), reply.message.begin());
    return reply;
}

Result<void> result_of(const DoneReply& reply) {
    if (reply.status == 0) return {};
    const uint32_t kind = reply.status - 1;
    const size_t length = strnlen(reply.message.data(), reply.message.size());
    return Error{.kind = kind <= static_cast<uint32_t>(ErrorKind::Internal)
                             ? static_cast<ErrorKind>(kind)
                             : ErrorKind::Internal,
                 .message = std::string(reply.message.data(), length),
                 .field = {},
                 .os_error = reply.os_error};
}

}  // namespace cloister::warden
