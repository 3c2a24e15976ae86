#include "os/socket_lookup.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <linux/bpf.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <optional>
#include <vector>

namespace cloister::os {
namespace {

// --- The program ---

constexpr uint8_t kR0 = 0, kR1 = 1, kR2 = 2, kR3 = 3, kContext = 6, kSocket = 7, kResult = 8,
                  kStack = 10;
constexpr int32_t kTcpKey = 0, kUdpKey = 1;
constexpr uint32_t kEntries = 2;

// Jumps are to labels, which are set later.
class Assembler {
  public:
    enum Label : uint8_t { Assign, Pass, Drop, V6, Door, Labels };

    void load(uint8_t to, uint8_t base, size_t offset) {
        put(BPF_LDX | BPF_MEM | BPF_W, to, base, static_cast<int16_t>(offset), 0);
    }
    void move(uint8_t to, uint8_t from) { put(BPF_ALU64 | BPF_MOV | BPF_X, to, from, 0, 0); }
    void set(uint8_t to, int32_t value) { put(BPF_ALU64 | BPF_MOV | BPF_K, to, 0, 0, value); }
    void add(uint8_t to, int32_t value) { put(BPF_ALU64 | BPF_ADD | BPF_K, to, 0, 0, value); }
    void mask(uint8_t to, int32_t value) { put(BPF_ALU64 | BPF_AND | BPF_K, to, 0, 0, value); }
    void store_register(int16_t offset, uint8_t from) {
        put(BPF_STX | BPF_MEM | BPF_W, kStack, from, offset, 0);
    }
    void call(int32_t function) { put(BPF_JMP | BPF_CALL, 0, 0, 0, function); }
    void leave() { put(BPF_JMP | BPF_EXIT, 0, 0, 0, 0); }
    void load_map(uint8_t to, int map) {
        put(BPF_LD | BPF_DW | BPF_IMM, to, BPF_PSEUDO_MAP_FD, 0, map);
        put(0, 0, 0, 0, 0);
    }
    // 32 bits are compared: what is loaded has no more.
    void jump_if(uint8_t value, int32_t equals, Label to) {
        jumps_.push_back({code_.size(), to});
        put(BPF_JMP | BPF_JEQ | BPF_K, value, 0, 0, equals);
    }
    void jump_unless(uint8_t value, int32_t equals, Label to) {
        jumps_.push_back({code_.size(), to});
        put(BPF_JMP | BPF_JNE | BPF_K, value, 0, 0, equals);
    }
    void jump(Label to) {
        jumps_.push_back({code_.size(), to});
        put(BPF_JMP | BPF_JA, 0, 0, 0, 0);
    }
    void at(Label label) { labels_[label] = code_.size(); }

    std::vector<bpf_insn> finish() {
        for (const Jump& jump : jumps_) {
            code_[jump.from].off = static_cast<int16_t>(labels_[jump.to] - jump.from - 1);
        }
        return code_;
    }

  private:
    struct Jump {
        size_t from;
        Label to;
    };
    void put(unsigned code, uint8_t to, uint8_t from, int16_t offset, int32_t value) {
        bpf_insn one{};
        one.code = static_cast<uint8_t>(code);
        one.dst_reg = to & 0xf;
        one.src_reg = from & 0xf;
        one.off = offset;
        one.imm = value;
        code_.push_back(one);
    }
    std::vector<bpf_insn> code_;
    std::vector<Jump> jumps_;
    std::array<size_t, Labels> labels_{};
};

constexpr size_t kLocalV4 = offsetof(bpf_sk_lookup, local_ip4);
constexpr size_t kLocalV6 = offsetof(bpf_sk_lookup, local_ip6);
constexpr int16_t kKeySlot = -4;

// Where it is going decides: loopback is left alone, but for the door.
void write_choice(Assembler& out, uint16_t door) {
    using L = Assembler;
    out.move(kContext, kR1);
    out.load(kR2, kContext, offsetof(bpf_sk_lookup, family));
    out.jump_unless(kR2, AF_INET, L::V6);
    out.load(kR2, kContext, kLocalV4);
    out.jump_if(kR2, static_cast<int32_t>(htonl(0x7f000035)), L::Door);
    out.mask(kR2, static_cast<int32_t>(htonl(0xff000000)));
    out.jump_if(kR2, static_cast<int32_t>(htonl(0x7f000000)), L::Pass);
    out.jump(L::Assign);
    out.at(L::Door);
    out.load(kR2, kContext, offsetof(bpf_sk_lookup, local_port));
    out.jump_unless(kR2, door, L::Pass);
    out.load(kR2, kContext, offsetof(bpf_sk_lookup, protocol));
    out.jump_unless(kR2, IPPROTO_TCP, L::Pass);
    out.jump(L::Assign);
    out.at(L::V6);
    for (size_t word = 0; word < 3; ++word) {
        out.load(kR2, kContext, kLocalV6 + 4 * word);
        out.jump_unless(kR2, 0, L::Assign);
    }
    out.load(kR2, kContext, kLocalV6 + 12);
    out.jump_if(kR2, static_cast<int32_t>(htonl(1)), L::Pass);
}

// The keys of the map are the lowest bits of the protocols' numbers.
static_assert((IPPROTO_TCP & 1) == kTcpKey && (IPPROTO_UDP & 1) == kUdpKey);

// The socket of its protocol takes it; without one it is refused.
std::vector<bpf_insn> write_program(int map, uint16_t door) {
    using L = Assembler;
    Assembler out;
    write_choice(out, door);
    out.at(L::Assign);
    out.load(kR3, kContext, offsetof(bpf_sk_lookup, protocol));
    out.mask(kR3, 1);
    out.store_register(kKeySlot, kR3);
    out.move(kR2, kStack);
    out.add(kR2, kKeySlot);
    out.load_map(kR1, map);
    out.call(BPF_FUNC_map_lookup_elem);
    out.jump_if(kR0, 0, L::Drop);
    out.move(kSocket, kR0);
    out.move(kR1, kContext);
    out.move(kR2, kSocket);
    out.set(kR3, 0);
    out.call(BPF_FUNC_sk_assign);
    out.move(kResult, kR0);
    out.move(kR1, kSocket);
    out.call(BPF_FUNC_sk_release);
    out.jump_if(kResult, 0, L::Pass);
    out.at(L::Drop);
    out.set(kR0, SK_DROP);
    out.leave();
    out.at(L::Pass);
    out.set(kR0, SK_PASS);
    out.leave();
    return out.finish();
}

int call_bpf(int command, bpf_attr& attributes) {
    return static_cast<int>(::syscall(SYS_bpf, command, &attributes, sizeof(attributes)));
}

Result<Fd> make_map() {
    bpf_attr attributes{};
    attributes.map_type = BPF_MAP_TYPE_SOCKMAP;
    attributes.key_size = sizeof(uint32_t);
    attributes.value_size = sizeof(uint64_t);
    attributes.max_entries = kEntries;
    Fd map(call_bpf(BPF_MAP_CREATE, attributes));
    if (!map.open()) return last_os_failure("making a map of sockets");
    return map;
}

Result<void> put_socket(const Fd& map, int32_t key, const Fd& socket) {
    const auto value = static_cast<uint64_t>(socket.get());
    bpf_attr attributes{};
    attributes.map_fd = static_cast<uint32_t>(map.get());
    attributes.key = reinterpret_cast<uint64_t>(&key);
    attributes.value = reinterpret_cast<uint64_t>(&value);
    if (call_bpf(BPF_MAP_UPDATE_ELEM, attributes) != 0)
        return last_os_failure("entering a socket into a map");
    return {};
}

Result<Fd> load_program(const std::vector<bpf_insn>& code) {
    bpf_attr attributes{};
    attributes.prog_type = BPF_PROG_TYPE_SK_LOOKUP;
    attributes.expected_attach_type = BPF_SK_LOOKUP;
    attributes.insns = reinterpret_cast<uint64_t>(code.data());
    attributes.insn_cnt = static_cast<uint32_t>(code.size());
    static constexpr const char* kLicense = "Apache-2.0";  // it calls nothing that asks for another
    attributes.license = reinterpret_cast<uint64_t>(kLicense);
    Fd program(call_bpf(BPF_PROG_LOAD, attributes));
    if (!program.open()) return last_os_failure("loading the program that chooses sockets");
    return program;
}

// --- Routes ---

struct RouteRequest {
    nlmsghdr header{};
    rtmsg route{};
    std::array<char, 64> attributes{};
};

void put_attribute(RouteRequest& request, uint16_t type, const void* data, size_t size) {
    rtattr attribute{.rta_len = static_cast<uint16_t>(RTA_LENGTH(size)), .rta_type = type};
    char* at = reinterpret_cast<char*>(&request) + NLMSG_ALIGN(request.header.nlmsg_len);
    std::memcpy(at, &attribute, sizeof(attribute));
    std::memcpy(at + sizeof(attribute), data, size);
    request.header.nlmsg_len =
        static_cast<uint32_t>(NLMSG_ALIGN(request.header.nlmsg_len) + RTA_ALIGN(attribute.rta_len));
}

RouteRequest route_request(uint16_t type, uint16_t flags, unsigned char family) {
    RouteRequest out;
    out.header.nlmsg_len = NLMSG_LENGTH(sizeof(rtmsg));
    out.header.nlmsg_type = type;
    out.header.nlmsg_flags = static_cast<uint16_t>(NLM_F_REQUEST | NLM_F_ACK | flags);
    out.route.rtm_family = family;
    out.route.rtm_table = RT_TABLE_LOCAL;
    out.route.rtm_protocol = RTPROT_BOOT;
    out.route.rtm_scope = RT_SCOPE_HOST;
    out.route.rtm_type = RTN_LOCAL;
    const auto loopback = static_cast<int32_t>(::if_nametoindex("lo"));
    put_attribute(out, RTA_OIF, &loopback, sizeof(loopback));
    // Without this, what goes out would come from the address that it goes to.
    const uint32_t v4 = htonl(INADDR_LOOPBACK);
    const in6_addr v6 = IN6ADDR_LOOPBACK_INIT;
    if (family == AF_INET) put_attribute(out, RTA_PREFSRC, &v4, sizeof(v4));
    if (family == AF_INET6) put_attribute(out, RTA_PREFSRC, &v6, sizeof(v6));
    return out;
}

Result<void> ask(const RouteRequest& request) {
    const Fd socket(::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE));
    if (!socket.open()) return last_os_failure("asking for a route");
    if (::send(socket.get(), &request, request.header.nlmsg_len, 0) < 0)
        return last_os_failure("asking for a route");
    struct {
        nlmsghdr header;
        nlmsgerr error;
        std::array<char, 512> rest;
    } answer{};
    if (::recv(socket.get(), &answer, sizeof(answer), 0) < 0)
        return last_os_failure("asking for a route");
    if (answer.error.error != 0) return os_failure("changing a route", -answer.error.error);
    return {};
}

// A host without IPv6 has no such routes either.
bool has_no_ipv6(const Error& error) {
    return error.os_error == EAFNOSUPPORT || error.os_error == EOPNOTSUPP ||
           error.os_error == EACCES || error.os_error == EADDRNOTAVAIL || error.os_error == EINVAL;
}

}  // namespace

Result<Fd> attach_socket_lookup(const SocketLookup& lookup) {
    const Fd map = TRY(make_map());
    TRY_OK(put_socket(map, kTcpKey, *lookup.tcp));
    if (lookup.udp != nullptr) TRY_OK(put_socket(map, kUdpKey, *lookup.udp));
    const Fd program = TRY(load_program(write_program(map.get(), lookup.door)));
    const Fd here = TRY(open_file("/proc/thread-self/ns/net", O_RDONLY));
    bpf_attr attributes{};
    attributes.link_create.prog_fd = static_cast<uint32_t>(program.get());
    attributes.link_create.target_fd = static_cast<uint32_t>(here.get());
    attributes.link_create.attach_type = BPF_SK_LOOKUP;
    Fd link(call_bpf(BPF_LINK_CREATE, attributes));
    if (!link.open()) return last_os_failure("attaching the program that chooses sockets");
    return link;
}

Result<void> add_local_default_routes() {
    constexpr uint16_t kMake = NLM_F_CREATE | NLM_F_REPLACE;
    TRY_OK(ask(route_request(RTM_NEWROUTE, kMake, AF_INET)));
    auto v6 = ask(route_request(RTM_NEWROUTE, kMake, AF_INET6));
    if (!v6 && !has_no_ipv6(v6.error())) return v6;
    return {};
}

Result<void> remove_local_default_routes() {
    for (const unsigned char family : {uint8_t{AF_INET}, uint8_t{AF_INET6}}) {
        auto gone = ask(route_request(RTM_DELROUTE, 0, family));
        const bool none = !gone && (gone.error().os_error == ESRCH || has_no_ipv6(gone.error()));
        if (!gone && !none) return gone;
    }
    return {};
}

}  // namespace cloister::os
