// What cloisterd and the warden say to each other. The warden is root: a message that decodes is
// one that our own encoder could have written, to the last byte, and every id in it is one.
#include "base/limits.h"
#include "fuzz.h"
#include "wire/warden.h"

using namespace cloister;

namespace {

void check(const warden::JailPlan& plan) {
    EXPECT(is_id(plan.sandbox.view()) && is_id(plan.project.view()) &&
           is_id(plan.template_revision.view()));
    EXPECT(plan.cpu >= 1 && plan.cpu <= static_cast<uint32_t>(limits::kSandboxCpuMax));
    EXPECT(plan.memory_max <= limits::kSandboxMemoryMax && plan.pids_max >= 1);
}

}  // namespace

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    const std::string_view bytes = fuzz::text_of(data, size);
    if (const auto request = warden::decode_request(bytes)) {
        EXPECT(warden::encode(*request) == bytes);
        if (const auto* create = std::get_if<warden::CreateRequest>(&*request)) check(create->plan);
    }
    if (const auto reply = warden::decode_reply(bytes)) {
        EXPECT(warden::encode(*reply) == bytes);
        if (const auto* done = std::get_if<warden::DoneReply>(&*reply)) {
            (void)warden::result_of(*done);  // its text need not end in a zero byte
        }
    }
    return 0;
}
