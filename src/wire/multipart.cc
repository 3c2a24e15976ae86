#include "wire/multipart.h"

#include <algorithm>

#include "base/limits.h"

namespace cloister {
namespace {

constexpr size_t kHeadMax = 16 * limits::kKiB;
constexpr size_t kBoundaryMax = 70;  // RFC 2046
constexpr size_t kPreambleMax = 64 * limits::kKiB;

Error broken(std::string_view why) {
    return make_error(ErrorKind::InvalidArgument,
                      "the body is no multipart/form-data: " + std::string(why));
}

char lower(char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

bool same_word(std::string_view a, std::string_view b) {
    return std::ranges::equal(a, b, {}, lower, lower);
}

std::string_view trimmed(std::string_view text) {
    while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
    while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
    return text;
}

// A quoted string's content, from behind its first quote on; `text` goes on behind the last one.
// Browsers write `"` as %22 and leave backslashes alone; others escape both.
std::string take_quoted(std::string_view& text) {
    std::string out;
    while (!text.empty() && text.front() != '"') {
        const bool escape =
            text.size() > 1 && text[0] == '\\' && (text[1] == '"' || text[1] == '\\');
        if (escape) text.remove_prefix(1);
        out += text.front();
        text.remove_prefix(1);
    }
    if (!text.empty()) text.remove_prefix(1);
    return out;
}

// The value of `name=value` or `name="value"` among parameters separated by `;`.
std::optional<std::string> parameter(std::string_view header, std::string_view name) {
    std::string_view rest = header.substr(std::min(header.size(), header.find(';')));
    while (!rest.empty()) {
        rest.remove_prefix(1);  // the semicolon
        const size_t equals = rest.find_first_of("=;");
        if (equals == std::string_view::npos || rest[equals] == ';') {
            rest.remove_prefix(std::min(equals, rest.size()));
            continue;
        }
        const std::string_view key = trimmed(rest.substr(0, equals));
        rest = trimmed(rest.substr(equals + 1));
        std::string value;
        if (rest.starts_with('"')) {
            rest.remove_prefix(1);
            value = take_quoted(rest);
        } else {
            value = trimmed(rest.substr(0, rest.find(';')));
        }
        rest.remove_prefix(std::min(rest.size(), rest.find(';')));
        if (same_word(key, name)) return value;
    }
    return std::nullopt;
}

int hex(char c) {
    if (c >= '0' && c <= '9') return c - '0';
    const char small = lower(c);
    return small >= 'a' && small <= 'f' ? small - 'a' + 10 : -1;
}

std::string unescaped(std::string_view text) {
    std::string out;
    for (size_t i = 0; i < text.size(); ++i) {
        const int high = text[i] == '%' && i + 2 < text.size() ? hex(text[i + 1]) : -1;
        const int low = high >= 0 ? hex(text[i + 2]) : -1;
        out += low < 0 ? text[i] : static_cast<char>(high * 16 + low);
        if (low >= 0) i += 2;
    }
    return out;
}

// What HTML forms escape, and nothing else: a file may have a "%" in its name.
std::string without_form_escapes(std::string text) {
    for (const auto& [from, to] : {std::pair{"%22", '"'}, {"%0D", '\r'}, {"%0A", '\n'}}) {
        for (size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + 1))
            text.replace(at, 3, 1, to);
    }
    return text;
}

PartHead head_of(std::string_view disposition) {
    PartHead head{.name = parameter(disposition, "name").value_or(""), .filename = std::nullopt};
    constexpr std::string_view kUtf8 = "utf-8''";
    const auto extended = parameter(disposition, "filename*");
    if (extended && same_word(std::string_view(*extended).substr(0, kUtf8.size()), kUtf8)) {
        head.filename = unescaped(std::string_view(*extended).substr(kUtf8.size()));
    } else if (auto plain = parameter(disposition, "filename")) {
        head.filename = without_form_escapes(std::move(*plain));
    }
    return head;
}

}  // namespace

Result<MultipartDecoder> MultipartDecoder::create(std::string_view content_type) {
    const std::string_view type = trimmed(content_type.substr(0, content_type.find(';')));
    auto boundary = parameter(content_type, "boundary");
    if (!same_word(type, "multipart/form-data") || !boundary || boundary->empty() ||
        boundary->size() > kBoundaryMax || boundary->find('\n') != std::string::npos) {
        return make_error(
            ErrorKind::InvalidArgument,
            "several files are sent as `Content-Type: multipart/form-data; boundary=…`");
    }
    return MultipartDecoder(std::move(*boundary));
}

void MultipartDecoder::feed(std::string_view bytes) {
    buffer_.erase(0, used_);
    used_ = 0;
    if (state_ != State::End) buffer_ += bytes;
}

Result<std::optional<MultipartEvent>> MultipartDecoder::next() {
    for (;;) {
        switch (state_) {
            case State::Preamble:
                if (!preamble()) {
                    if (rest().size() > kPreambleMax) return broken("it has no boundary");
                    return std::nullopt;
                }
                break;
            case State::AfterBoundary:
                if (!TRY(after_boundary())) return std::nullopt;
                break;
            case State::Head:
                return head();
            case State::ContentBegin:
                if (!content_begins()) return std::nullopt;
                break;
            case State::Content:
                return content();
            case State::End:
                return std::nullopt;
        }
    }
}

bool MultipartDecoder::preamble() {
    const size_t at = rest().find(delimiter_);
    if (at == std::string_view::npos) return false;
    used_ += at + delimiter_.size();
    state_ = State::AfterBoundary;
    return true;
}

// Behind a boundary: `--` at the end of all, else the end of its line.
Result<bool> MultipartDecoder::after_boundary() {
    const size_t padding = std::min(rest().find_first_not_of(" \t"), rest().size());
    const std::string_view mark = rest().substr(padding, 2);
    if (padding > kBoundaryMax) return broken("a boundary's line goes on");
    if (mark.size() < 2) return false;
    if (mark == "--") {
        state_ = State::End;
        return true;
    }
    if (mark != "\r\n") return broken("a boundary's line goes on");
    used_ += padding;  // the line's end is the first of the head, which may be empty
    state_ = State::Head;
    return true;
}

Result<std::optional<MultipartEvent>> MultipartDecoder::head() {
    const size_t end = rest().find("\r\n\r\n");
    if (std::min(end, rest().size()) > kHeadMax) {
        return make_error(ErrorKind::TooLarge, "the head of a part has more than 16 KiB");
    }
    if (end == std::string_view::npos) return std::nullopt;
    std::string_view lines = rest().substr(2, std::max<size_t>(end, 2) - 2);
    std::string_view disposition;
    while (!lines.empty()) {
        const std::string_view line = lines.substr(0, lines.find("\r\n"));
        lines.remove_prefix(std::min(lines.size(), line.size() + 2));
        const size_t colon = line.find(':');
        if (same_word(line.substr(0, colon), "Content-Disposition"))
            disposition = trimmed(line.substr(std::min(line.size(), colon + 1)));
    }
    if (!same_word(disposition.substr(0, disposition.find(';')), "form-data"))
        return broken("a part has no `Content-Disposition: form-data`");
    PartHead out = head_of(disposition);
    used_ += end + 2;
    state_ = State::ContentBegin;
    return MultipartEvent(std::move(out));
}

// The head's last line end is still there: a boundary right behind it is an empty content's end.
bool MultipartDecoder::content_begins() {
    const std::string_view bytes = rest();
    const size_t compared = std::min(bytes.size(), delimiter_.size());
    const bool same = bytes.substr(0, compared) == delimiter_.substr(0, compared);
    if (same && compared < delimiter_.size()) return false;
    if (!same) used_ += 2;
    state_ = State::Content;
    return true;
}

std::optional<MultipartEvent> MultipartDecoder::content() {
    const std::string_view bytes = rest();
    const size_t at = bytes.find(delimiter_);
    if (at == 0) {
        used_ += delimiter_.size();
        state_ = State::AfterBoundary;
        return MultipartEvent(PartEnd{});
    }
    // What may be the beginning of a boundary waits for more.
    const size_t kept = delimiter_.size() - 1;
    const size_t sure = at != std::string_view::npos ? at
                        : bytes.size() > kept        ? bytes.size() - kept
                                                     : 0;
    if (sure == 0) return std::nullopt;
    used_ += sure;
    return MultipartEvent(PartContent{std::string(bytes.substr(0, sure))});
}

}  // namespace cloister
