// The first frame of a connection to the agent: its kind byte and payload become an operation, or
// an error.
#include <memory>

#include "base/limits.h"
#include "fuzz.h"
#include "programs/agent/operations.h"

namespace {

using namespace cloister;

// What the code of a run may be: one JSON string, passed on to the driver as it stands.
void check(const agent::RunCode& run) {
    EXPECT(run.code.data() >= run.request->bytes.data());
    EXPECT(run.code.data() + run.code.size() <=
           run.request->bytes.data() + run.request->bytes.size());
    const auto code = parse_json(run.code);
    EXPECT(code && code->is_string());
    EXPECT(run.timeout_ms >= limits::kRunTimeoutMinMs &&
           run.timeout_ms <= limits::kRunTimeoutMaxMs);
}

void check_path(const std::string& path) {
    EXPECT(path.starts_with('/') && path.find('\0') == std::string::npos);
}

}  // namespace

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    if (size == 0) return 0;  // the reader of messages has refused an empty one
    const auto frame = std::make_shared<agent::Held>();
    frame->bytes = fuzz::text_of(data, size);
    const auto operation = agent::decode_operation(frame, "/home/user");
    if (!operation) return 0;
    if (const auto* run = std::get_if<agent::RunCode>(&*operation)) check(*run);
    if (const auto* file = std::get_if<agent::FileOperation>(&*operation)) {
        check_path(file->request.path);
        // The child that does the work reads the same.
        const auto again = agent::decode_file_request(file->text, "/home/user");
        EXPECT(again && again->path == file->request.path && again->to == file->request.to);
    }
    return 0;
}
