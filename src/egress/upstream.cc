#include "egress/upstream.h"

#include <fmt/format.h>

#include <utility>

#include "base/number.h"
#include "wire/base64.h"

namespace cloister::egress {
namespace {

constexpr size_t kAnswerMax = 16 * 1024;
constexpr size_t kWordMax = 255;
constexpr char kVersion = 5, kNoPassword = 0, kPassword = 2, kConnect = 1, kByName = 3, kByV4 = 1,
               kByV6 = 4;

Error bad_url(std::string reason) {
    return make_error(ErrorKind::InvalidArgument,
                      "an upstream proxy is given as "
                      "http://HOST:PORT or socks5://HOST:PORT: " +
                          std::move(reason));
}

Error refused(std::string answer) {
    return make_error(ErrorKind::Unavailable, "the upstream proxy refused: " + std::move(answer));
}

Result<void> take_credentials(std::string_view& rest, Upstream& out) {
    const size_t at = rest.rfind('@');
    if (at == std::string_view::npos) return {};
    const std::string_view words = rest.substr(0, at);
    rest.remove_prefix(at + 1);
    const size_t colon = words.find(':');
    out.user = words.substr(0, colon);
    if (colon != std::string_view::npos) out.password = words.substr(colon + 1);
    if (out.user.empty() || out.user.size() > kWordMax || out.password.size() > kWordMax)
        return bad_url("its user or password is empty or too long");
    return {};
}

}  // namespace

Result<Upstream> parse_upstream(std::string_view url) {
    Upstream out;
    std::string_view rest = url;
    constexpr std::string_view kHttp = "http://", kSocks = "socks5://";
    if (rest.starts_with(kHttp)) {
        rest.remove_prefix(kHttp.size());
    } else if (rest.starts_with(kSocks)) {
        out.kind = Upstream::Kind::Socks5;
        rest.remove_prefix(kSocks.size());
    } else {
        return bad_url("it begins with neither");
    }
    TRY_OK(take_credentials(rest, out));
    if (rest.ends_with('/')) rest.remove_suffix(1);
    const size_t colon = rest.rfind(':');
    if (colon == std::string_view::npos) return bad_url("it has no port");
    const auto port = whole_number<uint16_t>(rest.substr(colon + 1));
    if (!port || *port == 0) return bad_url("its port is none");
    out.port = *port;
    out.host = TRY(parse_host(rest.substr(0, colon)));
    return out;
}

std::string Handshake::begin() {
    if (upstream_.kind == Upstream::Kind::Socks5) {
        if (upstream_.user.empty()) return {kVersion, 1, kNoPassword};
        return {kVersion, 1, kPassword};
    }
    const bool v6 = host_.find(':') != std::string::npos;
    const std::string target =
        v6 ? fmt::format("[{}]:{}", host_, port_) : fmt::format("{}:{}", host_, port_);
    std::string out = fmt::format("CONNECT {0} HTTP/1.1\r\nHost: {0}\r\n", target);
    if (!upstream_.user.empty()) {
        out += "Proxy-Authorization: Basic " +
               base64_encode(upstream_.user + ":" + upstream_.password) + "\r\n";
    }
    return out + "\r\n";
}

Result<bool> Handshake::feed(std::string_view bytes) {
    received_ += bytes;
    if (received_.size() > kAnswerMax) return refused("its answer has no end");
    return upstream_.kind == Upstream::Kind::Http ? feed_http() : feed_socks();
}

Result<bool> Handshake::feed_http() {
    const size_t end = received_.find("\r\n\r\n");
    if (end == std::string::npos) return false;
    const std::string_view line = std::string_view(received_).substr(0, received_.find("\r\n"));
    const bool http = line.starts_with("HTTP/1.") && line.size() > 11;
    if (!http || line.substr(9, 1) != "2") return refused(std::string(line.substr(0, 80)));
    if (received_.size() > end + 4) return refused("it said more than it was asked for");
    return true;
}

Result<bool> Handshake::feed_socks() {
    if (received_.size() < 2) return false;
    if (step_ == Step::Method) {
        if (received_[0] != kVersion) return refused("it is no SOCKS5 proxy");
        const char method = received_[1];
        received_.erase(0, 2);
        if (method == kPassword && !upstream_.user.empty()) {
            step_ = Step::Password;
            reply_ = std::string{1} + static_cast<char>(upstream_.user.size()) + upstream_.user +
                     static_cast<char>(upstream_.password.size()) + upstream_.password;
            return false;
        }
        if (method != kNoPassword) return refused("it wants another way to log in");
        step_ = Step::Connect;
        reply_ = socks_request();
        return false;
    }
    if (step_ == Step::Password) {
        if (received_[1] != 0) return refused("user and password are wrong");
        received_.erase(0, 2);
        step_ = Step::Connect;
        reply_ = socks_request();
        return false;
    }
    if (received_[1] != 0) return refused(fmt::format("SOCKS error {}", received_[1]));
    // Version, status, zero, and the address that it connects from, with its port.
    if (received_.size() < 5) return false;
    size_t address = 4;
    if (received_[3] == kByV6) address = 16;
    if (received_[3] == kByName) address = 1u + static_cast<uint8_t>(received_[4]);
    if (received_.size() < 4 + address + 2) return false;
    if (received_.size() > 4 + address + 2) return refused("it said more than it was asked for");
    return true;
}

std::string Handshake::socks_request() const {
    std::string out{kVersion, kConnect, 0};
    const auto address = parse_address(host_);
    if (!address) {
        out += kByName;
        out += static_cast<char>(host_.size());
        out += host_;
    } else {
        out += address->is_v4() ? kByV4 : kByV6;
        const size_t first = address->is_v4() ? 12 : 0;
        for (size_t i = first; i < address->bytes.size(); ++i)
            out += static_cast<char>(address->bytes[i]);
    }
    out += static_cast<char>(port_ >> 8);
    out += static_cast<char>(port_ & 0xff);
    return out;
}

}  // namespace cloister::egress
