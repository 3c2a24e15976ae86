// What `sudo` inside a sandbox asks the agent for. Anybody inside may send anything in its place.
#include "fuzz.h"
#include "wire/root_command.h"

using namespace cloister;

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    const std::string_view bytes = fuzz::text_of(data, size);
    if (const auto request = decode_root_request(bytes)) {
        for (const std::string& word : request->argv) EXPECT(word.find('\0') == std::string::npos);
        const auto again = encode(*request);
        EXPECT(again);
        const auto same = decode_root_request(std::string_view(*again).substr(4));
        EXPECT(same && same->identity == request->identity && same->cwd == request->cwd);
        EXPECT(same->argv == request->argv && same->env == request->env);
    }
    if (const auto reply = decode_root_reply(bytes)) EXPECT(encode(*reply) == bytes);
    return 0;
}
