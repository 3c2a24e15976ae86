// Stages of a sandbox's birth. Between clone and exec there is no room for error objects: a failed
// step writes one fixed-size report (which stage, which errno) up the sandbox's ready pipe and ends
// the process. The agent writes a single byte there when it accepts connections, so the length of
// what arrives tells the two apart.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"

namespace cloister::jail {

enum class Stage : int32_t {
    Fork,
    Clone,
    IdMap,
    Born,
    Groups,
    Mounts,
    Root,
    Runtime,
    Devices,
    Proc,
    Masks,
    ProcView,
    Names,
    Loopback,
    Time,
    Affinity,
    Limits,
    Descriptors,
    Identity,
    Filter,
    Execute,
};
std::string_view to_string(Stage stage);

struct StageReport {
    Stage stage = Stage::Fork;
    int32_t error_number = 0;
};

// Reads a ready pipe that has become readable: success if the agent is ready, else why it never
// will be.
Result<void> read_ready(int ready_fd);

// In words, of a whole report.
Error stage_failure(const StageReport& report);

// Where a straight-line child is, and its only way out on failure.
class Steps {
  public:
    explicit Steps(int report_fd) : report_fd_(report_fd) {}
    void at(Stage stage) { stage_ = stage; }
    Stage stage() const { return stage_; }
    // Passes a system call's result through, unless it is -1: then reports and ends this process.
    long must(long result) const;
    [[noreturn]] void fail(int error_number) const;

  private:
    int report_fd_;
    Stage stage_ = Stage::Fork;
};

}  // namespace cloister::jail
