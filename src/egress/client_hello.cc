#include "egress/client_hello.h"

#include <cstdint>

#include "egress/host_name.h"

namespace cloister::egress {
namespace {

constexpr size_t kRecordHeader = 5, kHandshakeHeader = 4, kRecordMax = 16 * 1024;
constexpr char kHandshake = 22, kClientHello = 1;
constexpr size_t kRandom = 32, kVersion = 2;
constexpr uint16_t kServerName = 0;

Error malformed() {
    return make_error(ErrorKind::InvalidArgument, "not a TLS ClientHello");
}

// Big-endian number of `count` bytes.
size_t number(std::string_view bytes, size_t count) {
    size_t value = 0;
    for (size_t i = 0; i < count; ++i) value = value << 8 | static_cast<uint8_t>(bytes[i]);
    return value;
}

Result<std::string_view> take(std::string_view& from, size_t count) {
    if (from.size() < count) return malformed();
    const std::string_view out = from.substr(0, count);
    from.remove_prefix(count);
    return out;
}

// What a length of `bytes` bytes stands in front of.
Result<std::string_view> take_vector(std::string_view& from, size_t bytes) {
    const std::string_view length = TRY(take(from, bytes));
    return take(from, number(length, bytes));
}

}  // namespace

Result<bool> ClientHello::feed(std::string_view bytes) {
    fed_ += bytes.size();
    if (fed_ > kHelloMax) return malformed();
    pending_ += bytes;
    return take_records();
}

Result<bool> ClientHello::take_records() {
    size_t used = 0;
    for (;;) {
        const std::string_view rest = std::string_view(pending_).substr(used);
        if (!rest.empty() && rest[0] != kHandshake) return malformed();
        if (rest.size() > 1 && rest[1] != 3) return malformed();
        if (rest.size() < kRecordHeader) break;
        const size_t length = number(rest.substr(3), 2);
        if (length == 0 || length > kRecordMax) return malformed();
        if (rest.size() < kRecordHeader + length) break;
        handshake_ += rest.substr(kRecordHeader, length);
        used += kRecordHeader + length;
        if (handshake_[0] != kClientHello) return malformed();
        if (handshake_.size() < kHandshakeHeader) continue;
        const size_t body = number(std::string_view(handshake_).substr(1), 3);
        if (body > kHelloMax) return malformed();
        if (handshake_.size() - kHandshakeHeader < body) continue;
        TRY_OK(read_hello(std::string_view(handshake_).substr(kHandshakeHeader, body)));
        return true;
    }
    pending_.erase(0, used);
    return false;
}

Result<void> ClientHello::read_hello(std::string_view body) {
    (void)TRY(take(body, kVersion + kRandom));
    (void)TRY(take_vector(body, 1));  // session
    (void)TRY(take_vector(body, 2));  // cipher suites
    (void)TRY(take_vector(body, 1));  // compression
    if (body.empty()) return {};
    const std::string_view extensions = TRY(take_vector(body, 2));
    if (!body.empty()) return malformed();
    return read_extensions(extensions);
}

Result<void> ClientHello::read_extensions(std::string_view extensions) {
    while (!extensions.empty()) {
        const size_t type = number(TRY(take(extensions, 2)), 2);
        const std::string_view content = TRY(take_vector(extensions, 2));
        if (type != kServerName) continue;
        if (saw_server_name_) return malformed();
        saw_server_name_ = true;
        TRY_OK(read_server_name(content));
    }
    return {};
}

// A list that is only ever one name.
Result<void> ClientHello::read_server_name(std::string_view extension) {
    std::string_view list = TRY(take_vector(extension, 2));
    const std::string_view kind = TRY(take(list, 1));
    const std::string_view text = TRY(take_vector(list, 2));
    if (!extension.empty() || !list.empty() || kind[0] != 0) return malformed();
    const Host host = TRY(parse_host(text));
    if (const auto* name = std::get_if<std::string>(&host)) server_name_ = *name;
    return {};
}

}  // namespace cloister::egress
