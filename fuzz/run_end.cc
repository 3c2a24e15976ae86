// The agent's `ended` event. The agent lives beside hostile code, so cloisterd believes nothing in
// it that it has not checked; what it accepts, it can also tell.
#include "engine/run_end_json.h"
#include "fuzz.h"

using namespace cloister;

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    const auto event = parse_object(fuzz::text_of(data, size));
    if (!event) return 0;
    const auto end = engine::decode_run_end(*event);
    if (!end) return 0;
    json::object run;
    engine::add_run_end(run, *end);
    EXPECT(parse_json(json::serialize(run)));
    return 0;
}
