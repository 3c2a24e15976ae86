#include "programs/agent/process_output.h"

#include <algorithm>
#include <utility>

namespace cloister::agent {
namespace {

// How many bytes of output the frame has whose header this is.
uint64_t payload_in(std::string_view header) {
    uint64_t length = 0;
    for (size_t i = 0; i < 4; ++i) length |= uint64_t{static_cast<uint8_t>(header[i])} << 8 * i;
    return length - 1;  // the length counts the byte of the kind
}

}  // namespace

ProcessOutput::ProcessOutput(SpoolRoom& room, std::string process, uint64_t segment_bytes)
    : room_(room), process_(std::move(process)), segment_bytes_(segment_bytes) {}

uint64_t ProcessOutput::first() const {
    return segments_.empty() ? end_ : segments_.front()->first;
}

void ProcessOutput::begin_segment() {
    if (segments_.size() >= kSegments) segments_.pop_front();
    segments_.push_back(
        std::make_unique<Segment>(room_, process_ + "." + std::to_string(made_), made_, end_));
    ++made_;
}

void ProcessOutput::append(FrameKind kind, std::string_view bytes) {
    const auto is_full = [this](const Segment& segment) {
        return segment.end() - segment.first >= segment_bytes_;
    };
    if (segments_.empty() || is_full(*segments_.back())) begin_segment();
    segments_.back()->spool.append(kind, {bytes});
    if (segments_.back()->spool.lost().frames > 0) {
        // There was no room for it, also not in place of what others had: what is new counts more
        // than what is old.
        segments_.clear();
        begin_segment();
        segments_.back()->spool.append(kind, {bytes});
    }
    end_ += bytes.size();
    // A spool that lost a frame takes no more: the next bytes begin with a new one.
    if (segments_.back()->spool.lost().frames > 0) segments_.clear();
}

bool ProcessOutput::drop_oldest_segment() {
    if (segments_.size() < 2) return false;
    segments_.pop_front();
    return true;
}

void ProcessOutput::drop_all() {
    segments_.clear();
}

const ProcessOutput::Segment* ProcessOutput::segment_of(uint64_t offset) const {
    for (const auto& segment : segments_) {
        if (offset < segment->end()) return segment.get();
    }
    return nullptr;
}

// Walks over the frames from the mark before the offset, or from the segment's begin.
void ProcessOutput::find_place(const Segment& segment, Cursor& cursor) const {
    cursor.segment = segment.number;
    cursor.place = cursor.inside = 0;
    uint64_t left = cursor.offset - segment.first;
    const auto& marks = segment.spool.marks();
    const auto mark = std::ranges::find_if(marks.rbegin(), marks.rend(), [left](const auto& known) {
        return known.before.out + known.before.err <= left;
    });
    if (mark != marks.rend()) {
        cursor.place = mark->place;
        left -= mark->before.out + mark->before.err;
    }
    for (;;) {
        const auto window = segment.spool.read(cursor.place, kFrameHeader);
        if (!window || window->size() < kFrameHeader) break;
        const uint64_t payload = payload_in(*window);
        if (left < payload) break;
        left -= payload;
        cursor.place += kFrameHeader + payload;
    }
    cursor.inside = left;
}

ProcessOutput::Cursor ProcessOutput::cursor_at(uint64_t offset) const {
    Cursor cursor{.offset = std::min(offset, end_)};
    const Segment* segment = segment_of(cursor.offset);
    if (segment != nullptr && segment->first <= cursor.offset) find_place(*segment, cursor);
    return cursor;
}

Result<ProcessOutput::Piece> ProcessOutput::read(Cursor& cursor, size_t most) const {
    const Segment* segment = segment_of(cursor.offset);
    const uint64_t next = segment != nullptr ? std::max(segment->first, cursor.offset) : end_;
    Piece piece{.frames = {}, .dropped = next - cursor.offset};
    if (piece.dropped > 0) cursor = {.offset = next};
    if (segment == nullptr) return piece;
    if (cursor.segment != segment->number) {
        cursor.segment = segment->number;
        cursor.place = cursor.inside = 0;
    }
    const size_t window = std::max(most, kProcessFrameMax + kFrameHeader);
    std::string bytes = TRY(segment->spool.read(cursor.place, window));
    // A read ends where the spool's file does: the rest is in memory.
    if (bytes.size() < window) {
        bytes += TRY(segment->spool.read(cursor.place + bytes.size(), window - bytes.size()));
    }
    size_t used = 0;
    while (bytes.size() - used >= kFrameHeader) {
        const uint64_t payload = payload_in(std::string_view(bytes).substr(used));
        if (bytes.size() - used < kFrameHeader + payload) break;
        const auto kind = static_cast<FrameKind>(bytes[used + 4]);
        const std::string_view body = std::string_view(bytes).substr(used + kFrameHeader, payload);
        append_frame(piece.frames, kind, body.substr(cursor.inside));
        cursor.offset += payload - cursor.inside;
        cursor.inside = 0;
        used += kFrameHeader + payload;
    }
    cursor.place += used;
    return piece;
}

}  // namespace cloister::agent
