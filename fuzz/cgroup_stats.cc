// Stat files of cgroups. An answer is a number in the text, `max`, or 0.
#include "os/cgroup_stats.h"

#include "fuzz.h"

using namespace cloister;

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    const std::string_view text = fuzz::text_of(data, size);
    const bool counts = text.find_first_of("123456789") != std::string_view::npos;
    EXPECT(counts || os::parse_cpu_usec(text, os::CgroupFormat::V1) == 0);
    EXPECT(counts || os::parse_cpu_usec(text, os::CgroupFormat::V2) == 0);
    EXPECT(counts || os::parse_oom_kills(text) == 0);
    EXPECT(counts || os::parse_pids_max_hits(text) == 0);
    EXPECT(counts || os::parse_key(text, "under_oom") == 0);
    EXPECT(counts || os::parse_reclaimable(text) == 0);
    EXPECT(counts || os::parse_bytes(text) == 0 || os::parse_bytes(text) == os::kUnlimited);
    return 0;
}
