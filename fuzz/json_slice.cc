// Messages of interpreters are passed on in slices that nobody decodes before cloisterd does:
// whatever the agent lets through must be JSON to everybody else, as a whole and in each slice.
#include "programs/agent/json_slice.h"

#include "fuzz.h"
#include "wire/json.h"

using namespace cloister;

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    const std::string_view text = fuzz::text_of(data, size);
    const auto members = agent::split_object(text);
    if (!members) return 0;
    EXPECT(parse_object(text));
    EXPECT(members->size() <= agent::kJsonMembersMax);
    for (const agent::JsonMember& member : *members) {
        EXPECT(parse_json(member.value));
        EXPECT(parse_json("\"" + std::string(member.key) + "\""));
        const std::string_view plain = agent::plain_string(member.value);
        EXPECT(plain.empty() || parse_json(member.value)->as_string() == plain);
    }
    return 0;
}
