#include "engine/run_output.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/utf8.h"
#include "wire/base64.h"

namespace cloister::engine {
namespace {

constexpr size_t kResultOverhead = 256;  // so that many tiny results are bounded too

json::object output_json(const Capture& kept, uint64_t bytes, uint64_t lost) {
    json::object out{{"text", kept.text()},
                     {"bytes", bytes + lost},
                     {"omitted_bytes", kept.omitted_bytes() + lost}};
    // The text of what is not UTF-8 is not exact.
    const auto whole = kept.whole();
    if (whole && !is_utf8(*whole)) out["base64"] = base64_encode(*whole);
    return out;
}

size_t size_of(const json::object& content) {
    return json::serialize(content).size() + kResultOverhead;
}

std::string_view display_id_of(const json::object& content) {
    const json::value* id = content.if_contains("display_id");
    return id != nullptr && id->is_string() ? std::string_view(id->as_string())
                                            : std::string_view();
}

json::object left_out_note(uint64_t count) {
    const std::string text =
        fmt::format("[{} more results are left out here: read the run's events to get all]", count);
    return {{"type", "display"}, {"data", {{"text/plain", text}}}, {"metadata", json::object()}};
}

}  // namespace

std::string_view RunOutput::feed(OutputStream stream, std::string_view bytes) {
    Stream& target = of(stream);
    target.bytes += bytes.size();
    target.kept.append(bytes);
    return target.text.feed(bytes);
}

std::string_view RunOutput::finish(OutputStream stream) {
    return of(stream).text.finish();
}

void RunOutput::lose(uint64_t bytes) {
    lost_bytes_ += bytes;
    out_.kept.append(
        fmt::format("\n[… {} bytes were lost here: the sandbox had no room for them …]\n", bytes));
}

void RunOutput::show(Kind kind, json::object content) {
    if (std::exchange(clear_at_next_, false)) clear_displays();
    const size_t bytes = size_of(content);
    if (results_left_out_ > 0 || results_bytes_ + bytes > kResultsMax) {
        ++results_left_out_;
        return;
    }
    results_bytes_ += bytes;
    content["type"] = kind == Kind::Display ? "display" : "result";
    results_.push_back(std::move(content));
}

void RunOutput::update(const json::object& content) {
    const std::string_view id = display_id_of(content);
    const size_t bytes = size_of(content);
    for (json::object& shown : results_) {
        if (id.empty() || display_id_of(shown) != id) continue;
        const size_t before = size_of(shown);
        if (results_bytes_ - std::min(before, results_bytes_) + bytes > kResultsMax) continue;
        results_bytes_ = results_bytes_ - std::min(before, results_bytes_) + bytes;
        for (const char* part : {"data", "metadata"}) {
            if (const json::value* value = content.if_contains(part)) shown[part] = *value;
        }
    }
}

void RunOutput::clear(When when) {
    clear_at_next_ = when == When::AtNextDisplay;
    if (when == When::Now) clear_displays();
}

void RunOutput::clear_displays() {
    results_.clear();
    results_bytes_ = 0;
    results_left_out_ = 0;
}

void RunOutput::add_streams_to(json::object& run) const {
    run["stdout"] = output_json(out_.kept, out_.bytes, lost_bytes_);
    run["stderr"] = output_json(err_.kept, err_.bytes, 0);
    json::array results(results_.begin(), results_.end());
    if (results_left_out_ > 0) results.push_back(left_out_note(results_left_out_));
    run["results"] = std::move(results);
}

void RunOutput::add_error_to(json::object& run) const {
    if (!error_.empty()) run["error"] = error_;
}

size_t RunOutput::kept_bytes() const {
    return out_.kept.kept_bytes() + err_.kept.kept_bytes() + results_bytes_;
}

}  // namespace cloister::engine
