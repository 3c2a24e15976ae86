#include "wire/root_command.h"

#include <charconv>
#include <utility>

#include "base/limits.h"

namespace cloister {
namespace {

constexpr char kEnded = 'e';
constexpr char kRefused = 'r';

// Words end with a zero byte, which none of them can hold.
void append_word(std::string& out, std::string_view word) {
    out += word.substr(0, word.find('\0'));
    out += '\0';
}

std::vector<std::string> words_of(std::string_view bytes) {
    std::vector<std::string> words;
    while (!bytes.empty()) {
        const size_t end = bytes.find('\0');
        words.emplace_back(bytes.substr(0, end));
        bytes.remove_prefix(end + 1);
    }
    return words;
}

Error malformed() {
    return make_error(ErrorKind::InvalidArgument, "a malformed request: use the sudo of the image");
}

}  // namespace

Result<std::string> encode(const RootRequest& request) {
    std::string body(1, static_cast<char>(request.identity));
    append_word(body, request.cwd);
    append_word(body, std::to_string(request.argv.size()));
    for (const std::string& word : request.argv) append_word(body, word);
    for (const std::string& variable : request.env) append_word(body, variable);
    if (body.size() > limits::kRootRequestMax) {
        return make_error(ErrorKind::TooLarge, "the command and its environment are longer than " +
                                                   std::to_string(limits::kRootRequestMax) +
                                                   " bytes: pass less");
    }
    std::string message;
    for (size_t i = 0; i < 4; ++i) message += static_cast<char>(body.size() >> 8 * i);
    return message + body;
}

Result<RootRequest> decode_root_request(std::string_view bytes) {
    if (bytes.size() < 2 || bytes.back() != '\0') return malformed();
    RootRequest request{.identity = static_cast<RootIdentity>(bytes.front())};
    if (request.identity != RootIdentity::Root && request.identity != RootIdentity::User) {
        return malformed();
    }
    std::vector<std::string> words = words_of(bytes.substr(1));
    if (words.size() < 2) return malformed();
    size_t count = 0;
    const std::string& text = words[1];
    const auto parsed = std::from_chars(text.data(), text.data() + text.size(), count);
    if (parsed.ec != std::errc() || parsed.ptr != text.data() + text.size()) return malformed();
    if (count > words.size() - 2) return malformed();
    request.cwd = std::move(words[0]);
    for (size_t i = 2; i < words.size(); ++i) {
        (i < 2 + count ? request.argv : request.env).push_back(std::move(words[i]));
    }
    return request;
}

std::string encode(const RootReply& reply) {
    if (reply.exit_code) return {kEnded, static_cast<char>(*reply.exit_code)};
    return kRefused + reply.refusal;
}

Result<RootReply> decode_root_reply(std::string_view bytes) {
    RootReply reply;
    if (bytes.size() == 2 && bytes[0] == kEnded) {
        reply.exit_code = static_cast<unsigned char>(bytes[1]);
        return reply;
    }
    if (bytes.size() > 1 && bytes[0] == kRefused) {
        reply.refusal = bytes.substr(1);
        return reply;
    }
    return make_error(ErrorKind::Unavailable, "the sandbox's agent went away");
}

}  // namespace cloister
