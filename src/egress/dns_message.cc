#include "egress/dns_message.h"

#include <algorithm>
#include <limits>

namespace cloister::egress::dns {
namespace {

constexpr size_t kHeader = 12;
constexpr uint16_t kResponse = 0x8000, kTruncated = 0x0200, kRecurse = 0x0100, kCanRecurse = 0x0080,
                   kOpcode = 0x7800;
constexpr uint16_t kIn = 1;
constexpr size_t kRecordsMax = 256;
constexpr size_t kPointersMax = 32;
constexpr size_t kNameBytesMax = 255;
constexpr size_t kChainMax = 12;
constexpr uint16_t kExtendedError = 15, kProhibited = 18;
constexpr uint16_t kOurPayload = 1232;

Error malformed() {
    return make_error(ErrorKind::InvalidArgument, "a malformed DNS message");
}

char lower(char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c | 0x20) : c;
}

bool same_name(std::string_view a, std::string_view b) {
    return std::ranges::equal(a, b, {}, lower, lower);
}

// Reads from the front of a message; names may point back into it.
class Reader {
  public:
    explicit Reader(std::string_view message) : message_(message) {}

    Result<uint16_t> u16() {
        const std::string_view two = TRY(bytes(2));
        return static_cast<uint16_t>(static_cast<uint8_t>(two[0]) << 8 |
                                     static_cast<uint8_t>(two[1]));
    }
    Result<uint32_t> u32() {
        const uint32_t high = TRY(u16());
        return high << 16 | TRY(u16());
    }
    Result<std::string_view> bytes(size_t count) {
        if (message_.size() - at_ < count) return malformed();
        const std::string_view out = message_.substr(at_, count);
        at_ += count;
        return out;
    }
    Result<std::string> name();

  private:
    std::string_view message_;
    size_t at_ = 0;
};

Result<std::string> Reader::name() {
    std::string out;
    size_t at = at_;
    bool followed = false;
    for (size_t jumps = 0; jumps <= kPointersMax;) {
        if (at >= message_.size()) return malformed();
        const auto length = static_cast<uint8_t>(message_[at]);
        if (length >= 0xc0) {
            if (at + 1 >= message_.size()) return malformed();
            if (!followed) at_ = at + 2;
            followed = true;
            at = static_cast<size_t>(length & 0x3f) << 8 | static_cast<uint8_t>(message_[at + 1]);
            ++jumps;
            continue;
        }
        if (length > 63 || message_.size() - at - 1 < length) return malformed();
        if (length == 0) {
            if (!followed) at_ = at + 1;
            return out;
        }
        const std::string_view label = message_.substr(at + 1, length);
        if (label.find('.') != std::string_view::npos) return malformed();  // would read as two
        if (!out.empty()) out += '.';
        out += label;
        if (out.size() > kNameBytesMax) return malformed();
        at += 1u + length;
    }
    return malformed();
}

void put16(std::string& out, uint16_t value) {
    out += static_cast<char>(value >> 8);
    out += static_cast<char>(value & 0xff);
}
void put32(std::string& out, uint32_t value) {
    put16(out, static_cast<uint16_t>(value >> 16));
    put16(out, static_cast<uint16_t>(value & 0xffff));
}

void put_name(std::string& out, std::string_view name) {
    while (!name.empty()) {
        const size_t length = std::min(name.find('.'), name.size());
        out += static_cast<char>(length);
        out += name.substr(0, length);
        name.remove_prefix(std::min(length + 1, name.size()));
    }
    out += '\0';
}

struct Header {
    uint16_t id = 0, flags = 0, questions = 0, answers = 0, authorities = 0, additional = 0;
};

Result<Header> read_header(Reader& in) {
    Header header;
    for (uint16_t* field : {&header.id, &header.flags, &header.questions, &header.answers,
                            &header.authorities, &header.additional}) {
        *field = TRY(in.u16());
    }
    return header;
}

void put_header(std::string& out, const Header& header) {
    for (const uint16_t field : {header.id, header.flags, header.questions, header.answers,
                                 header.authorities, header.additional}) {
        put16(out, field);
    }
}

struct Record {
    std::string name;
    uint16_t type = 0, cls = 0;
    uint32_t ttl = 0;
    std::string_view data;
    std::string alias;  // of a CNAME
};

Result<Record> read_record(Reader& in, std::string_view message) {
    Record out;
    out.name = TRY(in.name());
    out.type = TRY(in.u16());
    out.cls = TRY(in.u16());
    out.ttl = TRY(in.u32());
    const uint16_t length = TRY(in.u16());
    out.data = TRY(in.bytes(length));
    if (out.type == static_cast<uint16_t>(Type::Cname)) {
        // Its name may point back, so it is read in the whole message.
        const auto end = static_cast<size_t>(out.data.data() - message.data()) + length;
        Reader inner(message.substr(0, end));
        (void)TRY(inner.bytes(end - length));
        out.alias = TRY(inner.name());
    }
    return out;
}

Result<void> read_options(Reader& in, std::string_view message, const Header& header,
                          Question& question) {
    for (size_t i = 0; i < size_t{header.answers} + header.authorities + header.additional; ++i) {
        if (i >= kRecordsMax) return malformed();
        const Record record = TRY(read_record(in, message));
        if (record.type != static_cast<uint16_t>(Type::Opt)) continue;
        question.edns = true;
        question.answer_max = std::clamp<size_t>(record.cls, kUdpPlain, kOurPayload);
    }
    return {};
}

std::optional<IpAddress> address_of(const Record& record, Type type) {
    const auto byte = [&](size_t i) { return static_cast<uint8_t>(record.data[i]); };
    if (type == Type::A && record.data.size() == 4)
        return IpAddress::v4(byte(0), byte(1), byte(2), byte(3));
    if (type != Type::Aaaa || record.data.size() != 16) return std::nullopt;
    IpAddress out;
    for (size_t i = 0; i < out.bytes.size(); ++i) out.bytes[i] = byte(i);
    return out;
}

// The addresses at the end of the chain of aliases that begins with `name`.
void follow(const std::vector<Record>& records, std::string name, Type type, ServerAnswer& out) {
    out.ttl = std::numeric_limits<uint32_t>::max();
    for (size_t steps = 0; steps < kChainMax; ++steps) {
        const Record* alias = nullptr;
        for (const Record& record : records) {
            if (record.cls != kIn || !same_name(record.name, name)) continue;
            const auto address = record.type == static_cast<uint16_t>(type)
                                     ? address_of(record, type)
                                     : std::nullopt;
            if (address) out.addresses.push_back(*address);
            if (record.type == static_cast<uint16_t>(Type::Cname)) alias = &record;
            if (address || alias == &record) out.ttl = std::min(out.ttl, record.ttl);
        }
        if (!out.addresses.empty() || alias == nullptr) break;
        name = alias->alias;
    }
    if (out.addresses.empty()) out.ttl = 0;
}

void put_address(std::string& out, const IpAddress& address, Type type, uint32_t ttl) {
    put16(out, 0xc00c);  // the question's name
    put16(out, static_cast<uint16_t>(type));
    put16(out, kIn);
    put32(out, ttl);
    const size_t first = type == Type::A ? 12 : 0;
    put16(out, static_cast<uint16_t>(address.bytes.size() - first));
    for (size_t i = first; i < address.bytes.size(); ++i)
        out += static_cast<char>(address.bytes[i]);
}

void put_options(std::string& out, bool blocked) {
    out += '\0';
    put16(out, static_cast<uint16_t>(Type::Opt));
    put16(out, kOurPayload);
    put32(out, 0);
    put16(out, blocked ? 6 : 0);
    if (!blocked) return;
    put16(out, kExtendedError);
    put16(out, 2);
    put16(out, kProhibited);
}

}  // namespace

Result<Question> parse_question(std::string_view message) {
    Reader in(message);
    const Header header = TRY(read_header(in));
    const bool query = (header.flags & kResponse) == 0 && (header.flags & kOpcode) == 0;
    if (!query || header.questions != 1) return malformed();
    Question out{.id = header.id, .name = TRY(in.name())};
    out.recursion_desired = (header.flags & kRecurse) != 0;
    out.type = TRY(in.u16());
    if (TRY(in.u16()) != kIn) return malformed();
    TRY_OK(read_options(in, message, header, out));
    return out;
}

std::string encode_answer(const Question& question, const Answer& answer, size_t most) {
    Header header{.id = question.id, .questions = 1};
    header.flags = static_cast<uint16_t>(kResponse | kCanRecurse |
                                         (question.recursion_desired ? kRecurse : 0) |
                                         static_cast<uint16_t>(answer.code));
    header.additional = question.edns ? 1 : 0;
    std::string body;
    put_name(body, question.name);
    put16(body, question.type);
    put16(body, kIn);
    const auto type = static_cast<Type>(question.type);
    const size_t each = type == Type::A ? 16 : 28;
    constexpr size_t kOptions = 17;
    for (const IpAddress& address : answer.addresses) {
        if (kHeader + body.size() + each + kOptions > most) {
            header.flags |= kTruncated;
            break;
        }
        put_address(body, address, type, answer.ttl);
        ++header.answers;
    }
    if (question.edns) put_options(body, answer.blocked);
    std::string out;
    put_header(out, header);
    return out + body;
}

std::string encode_question(uint16_t id, std::string_view name, Type type) {
    std::string out;
    put_header(out, {.id = id, .flags = kRecurse, .questions = 1, .additional = 1});
    put_name(out, name);
    put16(out, static_cast<uint16_t>(type));
    put16(out, kIn);
    put_options(out, false);
    return out;
}

Result<ServerAnswer> parse_answer(std::string_view message, uint16_t id, std::string_view name,
                                  Type type) {
    Reader in(message);
    const Header header = TRY(read_header(in));
    if ((header.flags & kResponse) == 0 || header.id != id || header.questions != 1)
        return malformed();
    if (!same_name(TRY(in.name()), name)) return malformed();
    if (TRY(in.u16()) != static_cast<uint16_t>(type) || TRY(in.u16()) != kIn) return malformed();
    ServerAnswer out{.code = static_cast<Code>(header.flags & 0xf),
                     .truncated = (header.flags & kTruncated) != 0};
    std::vector<Record> records;
    for (size_t i = 0; i < std::min<size_t>(header.answers, kRecordsMax); ++i) {
        auto record = read_record(in, message);
        if (!record && out.truncated) break;
        if (!record) return std::move(record).error();
        records.push_back(std::move(*record));
    }
    follow(records, std::string(name), type, out);
    return out;
}

}  // namespace cloister::egress::dns
