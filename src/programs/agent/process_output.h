// ProcessOutput: what one process wrote, kept for readers that come at any time. Bytes are numbered
// from 0 in the order in which they came, stdout and stderr together. The newest ones are kept, in
// segments that are spools like those of runs; the oldest segment goes when there are too many, or
// when the sandbox's room for spools is short.
//
//     ProcessOutput output(room, process_id);
//     output.append(FrameKind::Stdout, "text");
//     auto cursor = output.cursor_at(after);
//     auto piece = TRY(output.read(cursor, limits::kStreamChunk));   // whole frames
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <string_view>

#include "base/process_limits.h"
#include "programs/agent/run_spool.h"

namespace cloister::agent {

// A frame of output holds at most so much, so that whole frames can be read in small pieces.
inline constexpr size_t kProcessFrameMax = 16 * limits::kKiB;

class ProcessOutput {
  public:
    ProcessOutput(SpoolRoom& room, std::string process,
                  uint64_t segment_bytes = limits::kProcessOutputKept / kSegments);

    // At most kProcessFrameMax bytes.
    void append(FrameKind kind, std::string_view bytes);
    // The numbers of the first byte that is kept, and of the next one that will come.
    uint64_t first() const;
    uint64_t end() const { return end_; }

    // Where a reader is. Positions in a segment are a way to get there fast; `offset` is what
    // counts.
    struct Cursor {
        uint64_t offset = 0;   // of the next byte for the reader
        uint64_t segment = 0;  // its number
        uint64_t place = 0;    // in the segment: where the frame with that byte begins
        uint64_t inside = 0;   // bytes of that frame before the byte
    };
    Cursor cursor_at(uint64_t offset) const;

    struct Piece {
        std::string frames;    // whole ones; empty: nothing more now
        uint64_t dropped = 0;  // bytes that are not kept any more, before the frames
    };
    // About `most` bytes of frames, or the count of what was lost; moves the cursor behind both.
    Result<Piece> read(Cursor& cursor, size_t most) const;

    // Gives the room of the oldest segment back; false if that is the one being written to.
    bool drop_oldest_segment();
    void drop_all();
    size_t segments() const { return segments_.size(); }

  private:
    static constexpr size_t kSegments = 16;
    struct Segment {
        Segment(SpoolRoom& room, const std::string& name, uint64_t segment_number, uint64_t offset)
            : number(segment_number), first(offset), spool(room, name) {}
        uint64_t end() const { return first + spool.output().out + spool.output().err; }
        const uint64_t number;
        const uint64_t first;  // number of its first byte
        RunSpool spool;
    };

    void begin_segment();
    const Segment* segment_of(uint64_t offset) const;
    void find_place(const Segment& segment, Cursor& cursor) const;

    SpoolRoom& room_;
    const std::string process_;
    const uint64_t segment_bytes_;
    std::deque<std::unique_ptr<Segment>> segments_;
    uint64_t made_ = 0;
    uint64_t end_ = 0;
};

}  // namespace cloister::agent
