// The first bytes of a connection out of a sandbox. Whatever the pieces, the same name is read.
#include "egress/client_hello.h"
#include "egress/host_name.h"
#include "fuzz.h"

using namespace cloister;

namespace {

std::string read_in(std::string_view bytes, size_t piece) {
    egress::ClientHello reader;
    for (size_t at = 0; at < bytes.size(); at += piece) {
        const auto done = reader.feed(bytes.substr(at, piece));
        if (!done) return "/malformed";
        if (*done) return reader.server_name().value_or("/nobody");
    }
    return "/more";
}

}  // namespace

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    const std::string_view bytes = fuzz::text_of(data, size);
    const std::string whole = read_in(bytes, bytes.size() + 1);
    const std::string pieces = read_in(bytes, 3);
    // What is behind a hello may spoil it only if it is read together with it.
    if (!whole.starts_with('/')) {
        EXPECT(pieces == whole);
        EXPECT(egress::canonical_name(whole).value() == whole);
    }
    if (pieces == "/more") EXPECT(whole == "/more");
    return 0;
}
