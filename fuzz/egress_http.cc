// Plain HTTP of sandboxes: in whatever pieces it comes, the same hosts are judged, and what is let
// through is what came.
#include "egress/http_requests.h"
#include "fuzz.h"

using namespace cloister;
using egress::HttpRequests;

namespace {

struct Outcome {
    std::string passed, hosts;
    bool refused = false;
    bool operator==(const Outcome&) const = default;
};

Outcome read_in(std::string_view bytes, size_t piece) {
    HttpRequests requests;
    Outcome out;
    while (!bytes.empty()) {
        std::string_view part = bytes.substr(0, piece);
        bytes.remove_prefix(part.size());
        while (!part.empty()) {
            const auto step = requests.next(part);
            out.refused = !step;
            if (!step) return out;
            EXPECT(step->used > 0 && step->used <= part.size());
            part.remove_prefix(step->used);
            out.passed += step->forward;
            if (step->kind != HttpRequests::Step::Kind::Head) continue;
            EXPECT(egress::parse_http_head(step->forward));
            const auto* name = std::get_if<std::string>(&requests.head().host);
            out.hosts += (name != nullptr ? *name : "address") + " ";
        }
    }
    return out;
}

}  // namespace

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    const std::string_view bytes = fuzz::text_of(data, size);
    const Outcome whole = read_in(bytes, size + 1);
    const Outcome pieces = read_in(bytes, 2);
    EXPECT(bytes.starts_with(whole.passed));
    EXPECT(bytes.starts_with(pieces.passed));
    EXPECT(whole.hosts == pieces.hosts);
    EXPECT(whole.refused == pieces.refused);
    return 0;
}
