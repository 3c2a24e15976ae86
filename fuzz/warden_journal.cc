// The warden's journal after a kill or a power cut: any bytes, of which only whole entries count.
#include "base/ids.h"
#include "base/limits.h"
#include "fuzz.h"
#include "programs/warden/journal.h"

using namespace cloister;

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    const std::string_view text = fuzz::text_of(data, size);
    for (const auto& [sandbox, entry] : warden::parse_journal(text)) {
        EXPECT(is_id(sandbox) && is_id(entry.nest));
        EXPECT(entry.slot < limits::kNestSlots);
    }
    return 0;
}
