// The warden's journal after a kill or a power cut: any bytes, of which only whole entries count.
#include "base/ids.h"
#include "base/limits.h"
#include "fuzz.h"
#include "programs/warden/journal.h"

using namespace cloister;

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    const warden::Book book = warden::parse_journal(fuzz::text_of(data, size));
    for (const auto& [nest, entry] : book.nests) EXPECT(is_id(nest) && is_id(entry.runtime));
    for (const auto& [sandbox, entry] : book.sandboxes) {
        EXPECT(is_id(sandbox) && sandbox == entry.plan.sandbox.view());
        EXPECT(entry.slot < limits::kNestSlots);
    }
    return 0;
}
