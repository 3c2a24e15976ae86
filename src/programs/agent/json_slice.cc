#include "programs/agent/json_slice.h"

#include "base/utf8.h"

namespace cloister::agent {
namespace {

// Numbers beyond this length mean nothing to a double, and some readers choke on them.
constexpr size_t kNumberMax = 40;

bool is_digit(char c) {
    return c >= '0' && c <= '9';
}

bool is_hex(char c) {
    return is_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

// Walks over one text. Every function answers whether it found what its name says, and stands
// behind it.
class Scanner {
  public:
    explicit Scanner(std::string_view text) : text_(text) {}

    size_t at() const { return at_; }
    bool at_end() const { return at_ == text_.size(); }
    std::string_view from(size_t start) const { return text_.substr(start, at_ - start); }

    void blanks() {
        while (!at_end() && std::string_view(" \t\r\n").find(text_[at_]) != std::string_view::npos)
            ++at_;
    }
    bool take(char wanted) {
        if (at_end() || text_[at_] != wanted) return false;
        ++at_;
        return true;
    }
    bool string();
    bool value(int depth);

  private:
    bool escape();
    bool number();
    bool digits();
    bool word(std::string_view wanted);
    bool array(int depth);
    bool object(int depth);
    uint32_t hex4() const;

    std::string_view text_;
    size_t at_ = 0;
};

bool Scanner::string() {
    if (!take('"')) return false;
    while (!at_end()) {
        const char c = text_[at_++];
        if (c == '"') return true;
        if (static_cast<unsigned char>(c) < 0x20) return false;
        if (c == '\\' && !escape()) return false;
    }
    return false;
}

uint32_t Scanner::hex4() const {
    uint32_t value = 0;
    for (size_t i = 0; i < 4; ++i) {
        const char c = at_ + i < text_.size() ? text_[at_ + i] : 'x';
        if (!is_hex(c)) return 0xFFFFFFFF;
        value = value * 16 + static_cast<uint32_t>(is_digit(c) ? c - '0' : (c | 0x20) - 'a' + 10);
    }
    return value;
}

// What stands behind a backslash. Halves of a surrogate pair must stand together.
bool Scanner::escape() {
    if (at_end()) return false;
    const char c = text_[at_++];
    if (c != 'u') return std::string_view("\"\\/bfnrt").find(c) != std::string_view::npos;
    const uint32_t first = hex4();
    if (first > 0xFFFF || (first >= 0xDC00 && first <= 0xDFFF)) return false;
    at_ += 4;
    if (first < 0xD800 || first > 0xDBFF) return true;
    if (!word("\\u")) return false;
    const uint32_t second = hex4();
    if (second < 0xDC00 || second > 0xDFFF) return false;
    at_ += 4;
    return true;
}

bool Scanner::digits() {
    const size_t start = at_;
    while (!at_end() && is_digit(text_[at_])) ++at_;
    return at_ > start;
}

bool Scanner::number() {
    const size_t start = at_;
    take('-');
    if (!take('0') && !digits()) return false;
    if (take('.') && !digits()) return false;
    if (take('e') || take('E')) {
        if (!take('+')) take('-');
        const size_t exponent = at_;
        if (!digits() || at_ - exponent > 3) return false;
    }
    return at_ - start <= kNumberMax;
}

bool Scanner::word(std::string_view wanted) {
    if (!text_.substr(at_).starts_with(wanted)) return false;
    at_ += wanted.size();
    return true;
}

bool Scanner::array(int depth) {
    take('[');
    blanks();
    if (take(']')) return true;
    for (;;) {
        if (!value(depth - 1)) return false;
        if (take(']')) return true;
        if (!take(',')) return false;
    }
}

bool Scanner::object(int depth) {
    take('{');
    blanks();
    if (take('}')) return true;
    for (;;) {
        blanks();
        if (!string()) return false;
        blanks();
        if (!take(':') || !value(depth - 1)) return false;
        if (take('}')) return true;
        if (!take(',')) return false;
    }
}

bool Scanner::value(int depth) {
    blanks();
    if (at_end() || depth <= 0) return false;
    bool valid = false;
    switch (text_[at_]) {
        case '"':
            valid = string();
            break;
        case '{':
            valid = object(depth);
            break;
        case '[':
            valid = array(depth);
            break;
        case 't':
            valid = word("true");
            break;
        case 'f':
            valid = word("false");
            break;
        case 'n':
            valid = word("null");
            break;
        default:
            valid = number();
    }
    blanks();
    return valid;
}

std::string_view without_blanks_behind(std::string_view text) {
    return text.substr(0, text.find_last_not_of(" \t\r\n") + 1);
}

Error not_an_object() {
    return make_error(ErrorKind::InvalidArgument,
                      "not one JSON object in UTF-8, or one nested too deeply");
}

bool read_member(Scanner& scanner, JsonMember& member) {
    scanner.blanks();
    const size_t key = scanner.at();
    if (!scanner.string()) return false;
    member.key = scanner.from(key + 1);
    member.key.remove_suffix(1);
    scanner.blanks();
    if (!scanner.take(':')) return false;
    scanner.blanks();
    const size_t value = scanner.at();
    if (!scanner.value(kSliceDepthMax)) return false;
    member.value = without_blanks_behind(scanner.from(value));
    return true;
}

}  // namespace

Result<std::vector<JsonMember>> split_object(std::string_view text) {
    if (!is_utf8(text)) return not_an_object();
    std::vector<JsonMember> members;
    Scanner scanner(text);
    scanner.blanks();
    if (!scanner.take('{')) return not_an_object();
    scanner.blanks();
    bool closed = scanner.take('}');
    while (!closed) {
        JsonMember member;
        if (members.size() == kJsonMembersMax || !read_member(scanner, member)) {
            return not_an_object();
        }
        members.push_back(member);
        closed = scanner.take('}');
        if (!closed && !scanner.take(',')) return not_an_object();
    }
    scanner.blanks();
    if (!scanner.at_end()) return not_an_object();
    return members;
}

std::string_view find_member(const std::vector<JsonMember>& members, std::string_view key) {
    for (const JsonMember& member : members) {
        if (member.key == key) return member.value;
    }
    return {};
}

std::string_view plain_string(std::string_view value) {
    if (value.size() < 2 || value.front() != '"') return {};
    if (value.find('\\') != std::string_view::npos) return {};
    return value.substr(1, value.size() - 2);
}

}  // namespace cloister::agent
