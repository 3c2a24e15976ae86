// RunView: the events of a run as a person reads them, or as NDJSON.
//
// Standard output and standard error get what the program wrote there, nothing else of ours is on
// standard output. Pictures are saved below ./cloister-out, their paths and the summary go to
// standard error.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "programs/cli/network_hint.h"
#include "programs/cli/sse.h"
#include "wire/json.h"
#include "wire/run_end.h"

namespace cloister::cli {

enum class Style { Person, Json };
enum class Summary { Shown, Quiet };

struct MadeFile {
    std::string path, url;
    uint64_t size = 0;
};
// What the `ended` event says.
struct Ending {
    EndReason reason = EndReason::SandboxLost;
    std::optional<int> exit_code;
    std::string message;
    std::optional<LimitFired> limit;
    std::vector<std::string> limits_hit;
    int64_t wall_ms = 0, cpu_ms = 0;
    uint64_t memory_peak_bytes = 0;
    std::vector<MadeFile> files;
    uint64_t files_left_out = 0;
};
// `run` is a whole Run (contract/openapi.yaml) that has ended.
Result<Ending> ending_of(const json::object& run);

class RunView {
  public:
    // Pictures are saved as cloister-out/NAME/figure-1.png and so on.
    RunView(Style style, Summary summary, std::string name)
        : style_(style), summary_(summary), name_(std::move(name)) {}

    // Cancelled if standard output is closed (`… | head`).
    Result<void> show(const SseEvent& event);
    // The run's id, once it has started.
    const std::string& run_id() const { return run_id_; }
    const std::optional<Ending>& ending() const { return ending_; }
    void set_ending(Ending ending) { ending_ = std::move(ending); }
    // The sandbox has no network: if the run fails for that, the last line says how to give it one.
    void without_network() { hints_ = true; }
    // The files that the run made, unless they are fetched, and the last line.
    void summarize();
    void list_files();

  private:
    Result<void> show_to_person(const SseEvent& event, const json::object& data);
    Result<void> show_output(int standard, std::string_view bytes);
    // Before a line of our own.
    void end_line();
    Result<void> show_display(const json::object& data);
    Result<void> show_error(const json::object& error) const;
    Result<void> save_picture(const json::object& event, std::string_view extension,
                              std::string_view bytes);

    Style style_;
    Summary summary_;
    std::string name_;
    std::string run_id_;
    std::optional<Ending> ending_;
    int pictures_ = 0;
    std::map<std::string, int> numbers_by_display_;  // an updated display replaces its picture
    bool line_is_open_ = false;  // a terminal shows output that does not end a line: a progress bar
    bool has_error_ = false;
    bool hints_ = false;
    NetworkHint network_hint_;
};

}  // namespace cloister::cli
