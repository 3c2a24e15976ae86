// `Range` and the headers of conditional requests: what is sent lies within the file.
#include "faces/rest/byte_range.h"

#include "faces/rest/conditions.h"
#include "fuzz.h"

using namespace cloister;

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    const std::string text(fuzz::text_of(data, size));
    if (const auto range = rest::parse_range(text)) {
        for (const uint64_t bytes : {uint64_t{0}, uint64_t{1}, uint64_t{1000}, UINT64_MAX}) {
            const auto slice = rest::slice_of(*range, bytes);
            if (!slice) continue;
            EXPECT(slice->length > 0 && slice->offset < bytes);
            EXPECT(slice->length <= bytes - slice->offset);
        }
    }
    const rest::Version version{.etag = "abc", .modified_ms = 784'111'777'000};
    (void)rest::parse_http_date(text);
    for (const char* name :
         {"If-Match", "If-None-Match", "If-Modified-Since", "If-Unmodified-Since"}) {
        (void)rest::judge({{name, text}}, version);
    }
    (void)rest::range_holds({{"If-Range", text}}, version);
    EXPECT(rest::first_etag(text).size() <= text.size());
    return 0;
}
