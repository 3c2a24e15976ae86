// RunStream: the way of one run's events to whoever reads them. Every frame goes into the run's
// spool, and to the client that is attached, if there is one: what it has missed from the spool,
// then live. RunStreams: those of all runs that go on, of ended ones that nobody has forgotten, and
// of forgotten ones that wrote something: their output can be read until it has to make room.
//
// The stream outlives its run and any client.
#pragma once

#include <functional>
#include <initializer_list>
#include <list>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>

#include "programs/agent/connection.h"
#include "programs/agent/run_spool.h"
#include "programs/agent/spool_output.h"

namespace cloister::agent {

class RunStream {
  public:
    RunStream(SpoolRoom& room, std::string run, std::string context);
    ~RunStream();
    RunStream(const RunStream&) = delete;

    const std::string& run() const { return run_; }
    const std::string& context() const { return context_; }
    bool ended() const { return !end_.empty(); }

    // --- For the run ---
    // What a client sends, and that it sends no more. Cleared when the run is over.
    std::function<void(const HeldMessage&)> on_frame;
    std::function<void()> on_input_end;

    void send(FrameKind kind, std::string_view payload, Haste haste = Haste::Now);
    // One json frame put together from texts and slices of `message`.
    void send_json(const HeldMessage& message, std::initializer_list<std::string_view> parts,
                   Haste haste = Haste::Now);
    void flush();
    // The last event. `brief` is kept for later clients if there is no room for `whole`.
    void end(std::string whole, std::string brief);
    // How far the client is behind; 0 without a client.
    uint64_t backlog() const;
    void set_reading(Connection::Reading reading);
    void cut_off();

    // --- For clients ---
    // From the first event on; an earlier client is cut off.
    void attach(Connection& client);
    uint64_t stdin_bytes() const { return stdin_bytes_; }  // that clients have sent so far
    // Sends on what the client has room for. Call it now and then: it is no work if there is
    // nothing to do.
    void feed();

    // Whether its file can go to make room.
    bool can_drop() const { return ended() && client_ == nullptr && spool_.has_file(); }
    void drop() {
        spool_.drop();
        dropped_ = true;
    }
    bool dropped() const { return dropped_; }
    // Nobody asks for the events of this ended run any more.
    void retire();
    RunSpool& spool() { return spool_; }

  private:
    void take(const HeldMessage& frame);
    void go_live();
    Connection* let_go();

    SpoolRoom& room_;
    const std::string run_, context_;
    RunSpool spool_;
    std::string end_;  // the last event
    Connection* client_ = nullptr;
    bool dropped_ = false;
    bool live_ = false;  // the client has all that the spool had
    uint64_t sent_ = 0;  // of the spool, to a client that is not live
    uint64_t stdin_bytes_ = 0;
};

class RunStreams {
  public:
    explicit RunStreams(const os::Fd& spool_directory);

    RunStream* find(std::string_view run) const;
    RunStream& add(std::string run, std::string context);
    // The end of that run was taken; nothing for one that goes on.
    void forget(std::string_view run);
    // Answers the client with what the run wrote. False if that is not kept (any more).
    bool read_output(Connection& client, const ReadOutput& range);
    // Feeds all; and the oldest ended ones go if there are more than limits::kUnclaimedRunsMax.
    void tend();
    const std::list<std::unique_ptr<RunStream>>& all() const { return streams_; }
    // What all spools of the sandbox share.
    SpoolRoom& room() { return room_; }
    // Asked for room when no run has any left to give; false if there is none.
    std::function<bool()> more_to_drop;

  private:
    using Streams = std::list<std::unique_ptr<RunStream>>;
    struct Reading {
        RunStream* stream;
        Connection* client;  // null when it is over
        SpoolOutput output;
    };

    RunStream* find_kept(std::string_view run) const;
    static void feed(Reading& reading);
    void cut_readers_of(const RunStream& stream);
    bool drop_oldest();
    void drop_oldest_kept();
    void spill_oldest();

    SpoolRoom room_;
    Streams streams_;  // oldest first
    Streams kept_;     // forgotten ones, oldest first
    std::unordered_map<std::string, Streams::iterator> kept_by_run_;
    std::list<Reading> readings_;
};

}  // namespace cloister::agent
