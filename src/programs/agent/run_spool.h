// RunSpool: all frames of one run's event stream, exactly as they were or would have been sent, for
// clients that come later. In memory while they are few, then in a file of the sandbox's spools,
// which user code cannot see.
//
//     SpoolRoom room(birth.spool);
//     RunSpool spool(room, run_id);
//     spool.append(FrameKind::Stdout, {"text"});
//     while (auto bytes = TRY(spool.read(place, limits::kStreamChunk)); !bytes.empty()) …
//
// All spools of a sandbox share the bounds of their SpoolRoom. When the frames of ended runs have
// gone and there is still no room, a spool keeps what it has, counts what it cannot keep, and
// takes no more; the run goes on.
#pragma once

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "base/limits.h"
#include "os/fd.h"
#include "wire/frame.h"

namespace cloister::agent {

// What all spools together may hold in the agent's small memory.
inline constexpr size_t kSpoolsInMemory = 4 * limits::kMiB;

// What spools share. `directory` may be closed (tests): then there is only memory.
class SpoolRoom {
  public:
    explicit SpoolRoom(const os::Fd& directory, uint64_t files_max = limits::kSpoolBytesMax,
                       size_t memory_max = kSpoolsInMemory)
        : directory_(directory), files_max_(files_max), memory_max_(memory_max) {}
    SpoolRoom(const SpoolRoom&) = delete;

    // Drops the file of the oldest ended run; false if there is none to drop.
    std::function<bool()> drop_oldest;
    // Moves memory of an ended run to its file, if there is one that has some.
    std::function<void()> spill_oldest;

    uint64_t in_files() const { return in_files_; }
    size_t in_memory() const { return in_memory_; }
    bool has_memory(size_t bytes) const { return in_memory_ + bytes <= memory_max_; }
    void take_memory(size_t bytes) { in_memory_ += bytes; }
    void give_memory(size_t bytes) { in_memory_ -= bytes; }

  private:
    friend class RunSpool;
    const os::Fd& directory_;
    const uint64_t files_max_;
    const size_t memory_max_;
    uint64_t in_files_ = 0;
    size_t in_memory_ = 0;
};

struct StreamBytes {
    uint64_t out = 0;
    uint64_t err = 0;
};

class RunSpool {
  public:
    // A frame begins at `place`, and so much of the streams stands before it.
    struct Mark {
        uint64_t place = 0;
        StreamBytes before;
    };

    // `name`: of its file, if it gets one.
    RunSpool(SpoolRoom& room, std::string name) : room_(room), name_(std::move(name)) {}
    ~RunSpool() { drop(); }
    RunSpool(const RunSpool&) = delete;

    void append(FrameKind kind, std::initializer_list<std::string_view> parts);
    // The bytes of all frames that are kept.
    uint64_t size() const { return file_bytes_ + buffer_.size(); }
    // At most `most` bytes from `place` on; empty at the end.
    Result<std::string> read(uint64_t place, size_t most) const;
    // What is kept of the run's stdout and stderr.
    const StreamBytes& output() const { return output_; }
    // One every limits::kSpoolMarkStep, so that a reader of a range need not begin at the start.
    const std::vector<Mark>& marks() const { return marks_; }
    // Moves what is in memory to the file; false if that cannot be.
    bool spill() { return buffer_.empty() || flush(); }
    bool in_memory() const { return !buffer_.empty(); }
    bool has_file() const { return file_.open(); }
    // Keeps nothing any more: what it had counts as lost.
    void drop();

    struct Count {
        uint64_t frames = 0;
        uint64_t bytes = 0;  // of their payloads
    };
    // What could not be kept, or was dropped.
    const Count& lost() const { return lost_; }

  private:
    bool buffer_takes(size_t bytes) const;
    bool store(FrameKind kind, std::initializer_list<std::string_view> parts, size_t payload);
    bool flush();
    bool write_to_file(std::string_view first, std::initializer_list<std::string_view> rest);
    bool make_room(uint64_t bytes) const;
    Result<void> write_at_end(std::string_view first, std::initializer_list<std::string_view> rest);
    void start_writing_back();
    void count_kept(FrameKind kind, uint64_t place, size_t payload);

    SpoolRoom& room_;
    const std::string name_;
    os::Fd file_;
    uint64_t file_bytes_ = 0;
    uint64_t written_back_ = 0;  // of them: on their way to the disk
    std::string buffer_;         // what comes behind the file's bytes
    Count kept_, lost_;
    StreamBytes output_;
    std::vector<Mark> marks_;
};

}  // namespace cloister::agent
