#include "programs/cli/sse.h"

#include "base/limits.h"

namespace cloister::cli {
namespace {

// JSON may write one byte of a display as six ("\u0000").
constexpr size_t kEventMax = 6 * limits::kDisplayMax;

}  // namespace

Result<std::vector<SseEvent>> SseParser::feed(std::string_view piece) {
    std::vector<SseEvent> whole;
    size_t searched = buffer_.size();
    buffer_ += piece;
    size_t begin = 0;
    for (;;) {
        const size_t end = buffer_.find('\n', searched);
        if (end == std::string::npos) break;
        take_line(std::string_view(buffer_).substr(begin, end - begin), whole);
        begin = searched = end + 1;
    }
    buffer_.erase(0, begin);
    if (buffer_.size() + current_.data.size() > kEventMax) {
        return make_error(ErrorKind::TooLarge, "the service sent an event that is too large");
    }
    return whole;
}

void SseParser::take_line(std::string_view line, std::vector<SseEvent>& whole) {
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (line.empty()) {
        if (has_data_) whole.push_back(std::move(current_));
        current_ = {};
        has_data_ = false;
        return;
    }
    const size_t colon = std::min(line.find(':'), line.size());
    const std::string_view field = line.substr(0, colon);
    std::string_view value = line.substr(std::min(colon + 1, line.size()));
    if (value.starts_with(' ')) value.remove_prefix(1);
    if (field == "id") current_.id = value;
    if (field == "event") current_.type = value;
    if (field == "data") {
        if (has_data_) current_.data += '\n';
        current_.data += value;
        has_data_ = true;
    }
}

}  // namespace cloister::cli
