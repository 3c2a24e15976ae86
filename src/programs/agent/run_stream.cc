#include "programs/agent/run_stream.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "programs/agent/answers.h"

namespace cloister::agent {
namespace {

// A client that catches up is given so much ahead of what it reads.
constexpr size_t kFedAhead = limits::kAgentOutputBuffered / 2;

std::string lost_event(const RunSpool::Count& lost) {
    return fmt::format(R"({{"event":"lost","events":{},"bytes":{}}})", lost.frames, lost.bytes);
}

}  // namespace

RunStream::RunStream(SpoolRoom& room, std::string run, std::string context)
    : room_(room), run_(std::move(run)), context_(std::move(context)), spool_(room, run_) {}

RunStream::~RunStream() {
    room_.give_memory(end_.size());
    if (Connection* client = let_go()) client->finish();
}

void RunStream::send(FrameKind kind, std::string_view payload, Haste haste) {
    spool_.append(kind, {payload});
    if (live_) client_->send(kind, payload, haste);
}

void RunStream::send_json(const HeldMessage& message, std::initializer_list<std::string_view> parts,
                          Haste haste) {
    spool_.append(FrameKind::Json, parts);
    if (live_) client_->send_json(message, parts, haste);
}

void RunStream::flush() {
    if (client_ != nullptr) client_->flush();
}

void RunStream::end(std::string whole, std::string brief) {
    on_frame = nullptr;
    on_input_end = nullptr;
    if (live_) client_->send(FrameKind::Json, whole);
    const bool fits = whole.size() <= limits::kSpoolInMemory && room_.has_memory(whole.size());
    end_ = fits ? std::move(whole) : std::move(brief);
    room_.take_memory(end_.size());
    if (live_) let_go()->set_free();
}

uint64_t RunStream::backlog() const {
    if (client_ == nullptr) return 0;
    return client_->queued() + (live_ ? 0 : spool_.size() - sent_);
}

void RunStream::set_reading(Connection::Reading reading) {
    if (client_ != nullptr) client_->set_reading(reading);
}

void RunStream::cut_off() {
    live_ = false;
    if (client_ != nullptr) std::exchange(client_, nullptr)->cut_off();
}

// The client, if there is one, who is nobody's from now on.
Connection* RunStream::let_go() {
    live_ = false;
    Connection* client = std::exchange(client_, nullptr);
    if (client == nullptr) return nullptr;
    client->on_frame = nullptr;
    client->on_input_end = client->on_gone = nullptr;
    return client;
}

void RunStream::retire() {
    room_.give_memory(end_.size());
    end_ = {};
    if (Connection* client = let_go()) client->finish();
}

void RunStream::attach(Connection& client) {
    cut_off();
    client_ = &client;
    sent_ = 0;
    client.on_frame = [this](const HeldMessage& frame) { take(frame); };
    client.on_input_end = [this] {
        if (on_input_end) on_input_end();
    };
    client.on_gone = [this] {
        client_ = nullptr;
        live_ = false;
    };
    feed();
}

void RunStream::take(const HeldMessage& frame) {
    if (frame->bytes[0] != static_cast<char>(FrameKind::Stdin)) return cut_off();
    stdin_bytes_ += frame->bytes.size() - 1;
    if (on_frame) on_frame(frame);
}

void RunStream::feed() {
    while (client_ != nullptr && !live_ && client_->queued() < kFedAhead) {
        const auto bytes = spool_.read(sent_, limits::kStreamChunk);
        if (!bytes) return cut_off();
        if (bytes->empty()) return go_live();
        sent_ += bytes->size();
        client_->send_bytes(*bytes);
    }
}

void RunStream::go_live() {
    live_ = true;
    if (spool_.lost().frames > 0) client_->send(FrameKind::Json, lost_event(spool_.lost()));
    if (live_ && ended()) client_->send(FrameKind::Json, end_);
    if (live_ && ended()) let_go()->set_free();
}

RunStreams::RunStreams(const os::Fd& spool_directory) : room_(spool_directory) {
    room_.drop_oldest = [this] { return drop_oldest(); };
    room_.spill_oldest = [this] { spill_oldest(); };
}

RunStream* RunStreams::find(std::string_view run) const {
    const auto found = std::ranges::find(streams_, run, &RunStream::run);
    return found == streams_.end() ? nullptr : found->get();
}

RunStream* RunStreams::find_kept(std::string_view run) const {
    const auto found = kept_by_run_.find(std::string(run));
    return found == kept_by_run_.end() ? nullptr : found->second->get();
}

RunStream& RunStreams::add(std::string run, std::string context) {
    streams_.push_back(std::make_unique<RunStream>(room_, std::move(run), std::move(context)));
    return *streams_.back();
}

void RunStreams::forget(std::string_view run) {
    const auto found = std::ranges::find(streams_, run, &RunStream::run);
    if (found == streams_.end() || !(*found)->ended()) return;
    RunStream& stream = **found;
    stream.retire();
    const StreamBytes& output = stream.spool().output();
    if (output.out + output.err == 0) {
        cut_readers_of(stream);
        streams_.erase(found);
        return;
    }
    kept_.splice(kept_.end(), streams_, found);
    kept_by_run_.emplace(stream.run(), std::prev(kept_.end()));
    if (kept_.size() > limits::kOutputsKeptMax) drop_oldest_kept();
}

bool RunStreams::read_output(Connection& client, const ReadOutput& range) {
    RunStream* stream = find(range.run);
    if (stream == nullptr) stream = find_kept(range.run);
    const bool dropped = stream != nullptr && stream->dropped();
    if (stream == nullptr || dropped) return false;
    Reading& reading = readings_.emplace_back(
        Reading{.stream = stream, .client = &client, .output = {stream->spool(), range}});
    client.on_frame = nullptr;
    client.on_input_end = nullptr;
    client.on_gone = [&reading] { reading.client = nullptr; };
    const bool goes_on = kept_by_run_.find(range.run) == kept_by_run_.end() && !stream->ended();
    client.send(FrameKind::Json,
                ok_answer(fmt::format(R"("size":{},"goes_on":{},"lost":{})", reading.output.size(),
                                      goes_on, stream->spool().lost().bytes)));
    feed(reading);
    return true;
}

void RunStreams::feed(Reading& reading) {
    while (reading.client != nullptr && reading.client->queued() < kFedAhead) {
        Connection& client = *reading.client;
        const auto bytes = reading.output.next();
        if (bytes) client.send(FrameKind::Data, *bytes);
        if (bytes && !bytes->empty()) continue;
        client.on_gone = nullptr;
        reading.client = nullptr;
        if (bytes) return client.finish();
        return client.cut_off();
    }
}

void RunStreams::cut_readers_of(const RunStream& stream) {
    std::erase_if(readings_, [&stream](const Reading& reading) {
        if (reading.stream != &stream) return false;
        if (reading.client != nullptr) reading.client->cut_off();
        return true;
    });
}

void RunStreams::tend() {
    for (const auto& stream : streams_) stream->feed();
    for (Reading& reading : readings_) feed(reading);
    std::erase_if(readings_, [](const Reading& reading) { return reading.client == nullptr; });
    auto ended = static_cast<size_t>(std::ranges::count_if(streams_, &RunStream::ended));
    std::erase_if(streams_, [&](const auto& stream) {
        if (!stream->ended() || ended <= limits::kUnclaimedRunsMax) return false;
        --ended;
        cut_readers_of(*stream);
        return true;
    });
}

bool RunStreams::drop_oldest() {
    if (!kept_.empty()) {
        drop_oldest_kept();
        return true;
    }
    const auto oldest = std::ranges::find_if(streams_, &RunStream::can_drop);
    if (oldest == streams_.end()) return more_to_drop && more_to_drop();
    cut_readers_of(**oldest);
    (*oldest)->drop();
    return true;
}

void RunStreams::drop_oldest_kept() {
    cut_readers_of(*kept_.front());
    kept_by_run_.erase(kept_.front()->run());
    kept_.pop_front();
}

// It is out of the list meanwhile: to write its file, the oldest may have to make room. One that
// cannot be moved to a file goes altogether.
void RunStreams::spill_oldest() {
    const auto in_memory = [](const auto& stream) { return stream->spool().in_memory(); };
    const auto oldest = std::ranges::find_if(kept_, in_memory);
    if (oldest == kept_.end()) return;
    Streams one;
    one.splice(one.end(), kept_, oldest);
    if (one.front()->spool().spill()) {
        kept_.splice(std::ranges::find_if(kept_, in_memory), one);
        return;
    }
    cut_readers_of(*one.front());
    kept_by_run_.erase(one.front()->run());
}

}  // namespace cloister::agent
