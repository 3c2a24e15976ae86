// RunOutput: what a run has written and shown, bounded, for JSON answers. The live events are
// RunLog's.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/limits.h"
#include "engine/capture.h"
#include "wire/json.h"

namespace cloister::engine {

// The results of one run that an answer holds, together. More are counted, and say so.
inline constexpr size_t kResultsMax = limits::kDisplayMax;

enum class OutputStream { Stdout, Stderr };

class RunOutput {
  public:
    // `inline_max`: bytes of each stream.
    explicit RunOutput(size_t inline_max = limits::kInlineOutputMax)
        : out_(inline_max), err_(inline_max) {}

    // Takes what the run wrote and answers those of the bytes whose characters are whole; valid as
    // TextStream says.
    std::string_view feed(OutputStream stream, std::string_view bytes);
    // What still waited for its rest.
    std::string_view finish(OutputStream stream);

    // So many bytes of the output came to nobody.
    void lose(uint64_t bytes);

    enum class Kind { Display, Result };
    void show(Kind kind, json::object content);  // content: data, metadata, display_id?
    void update(const json::object& content);    // replaces what was shown under that display_id
    enum class When { Now, AtNextDisplay };
    void clear(When when);
    void set_error(json::object error) { error_ = std::move(error); }

    // Adds stdout, stderr and results.
    void add_streams_to(json::object& run) const;
    void add_error_to(json::object& run) const;
    size_t kept_bytes() const;

  private:
    struct Stream {
        explicit Stream(size_t inline_max) : kept(inline_max) {}
        TextStream text;
        Capture kept;
        uint64_t bytes = 0;
    };
    Stream& of(OutputStream stream) { return stream == OutputStream::Stdout ? out_ : err_; }
    void clear_displays();

    Stream out_, err_;
    uint64_t lost_bytes_ = 0;
    std::vector<json::object> results_;
    size_t results_bytes_ = 0;
    uint64_t results_left_out_ = 0;
    bool clear_at_next_ = false;
    json::object error_;  // empty: none
};

}  // namespace cloister::engine
