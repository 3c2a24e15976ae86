// RunLog: the numbered events of one run. Kept in a bounded ring for readers that come back, and
// given live to readers that are attached.
//
//     RunLog::Reader reader = log.attach(after);
//     for (;;) {
//         std::vector<Event> events = reader.take(limits::kStreamChunk);   // may begin with a
//         `dropped` event if (events.empty() && log.closed()) break; if (events.empty()) { co_await
//         log.changed().wait(); continue; } … send them … reader.done(events);      // only now
//         they count as read
//     }
//
// Numbers start at 1 and have no gaps. The ring keeps limits::kRunEventsMax bytes, and beyond that
// only what an attached reader has not read yet; the writer waits (room()) while such a reader is
// more than kReaderLagMax behind, so that bound holds. Threading: the loop's thread.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/limits.h"
#include "loop/loop.h"

namespace cloister::engine {

// How far an attached reader may be behind before the run's output waits for it.
inline constexpr uint64_t kReaderLagMax = limits::kRunEventsMax / 4;

struct Event {
    uint64_t number = 0;
    std::string_view type;  // started, stdout, stderr, display, …, ended; and dropped
    std::string_view data;  // a JSON object
};

class RunLog : public std::enable_shared_from_this<RunLog> {
  public:
    class Reader {
      public:
        Reader(std::shared_ptr<RunLog> log, uint64_t after);
        Reader(Reader&&) noexcept;
        Reader& operator=(Reader&&) = delete;
        ~Reader();

        // The next events, about `max_bytes` of them, at least one if there is any. Their texts
        // are the log's own: valid until done(), the next take(), or the end of the reader.
        std::vector<Event> take(size_t max_bytes);
        void done(const std::vector<Event>& events);

      private:
        friend class RunLog;
        std::shared_ptr<RunLog> log_;
        uint64_t after_;  // the number of the last event that was read
        std::string dropped_;
    };

    // `output_bytes`: how much of the run's output a reader misses with this event.
    void append(std::string_view type, std::string data, size_t output_bytes = 0);
    // No event comes behind the last one; readers that have read it are at the end.
    void close();
    bool closed() const { return closed_; }
    uint64_t last() const { return first_ + events_.size() - 1; }

    // `after`: the number of the last event that the reader has. It may be one that is still to
    // come here, when a new server is given the events of a run again.
    Reader attach(uint64_t after) { return Reader(shared_from_this(), after); }
    // Waits while an attached reader is too far behind.
    Task<void> room();
    // Whether room() would wait now.
    bool held_back() const { return !hurry_ && reader_lags(); }
    // From now on room() does not wait any more: the run is past its time and has to come to its
    // end.
    void hurry();

    Signal& changed() { return changed_; }
    size_t bytes() const { return bytes_; }

  private:
    struct Kept {
        std::string type, data;
        uint64_t output_before = 0;  // output bytes of all events before this one
        uint64_t cost_before = 0;    // memory of all events before this one
    };

    uint64_t output_before(uint64_t number) const;
    std::string dropped_before(uint64_t first, uint64_t after) const;
    uint64_t slowest_reader() const;
    bool reader_lags() const;
    void trim();

    std::deque<Kept> events_;
    uint64_t first_ = 1;  // number of events_.front()
    uint64_t total_output_ = 0;
    uint64_t total_cost_ = 0;
    size_t bytes_ = 0;  // of events_
    // For exact counts in `dropped`: where the last events that left the ring began.
    std::deque<uint64_t> left_;
    std::vector<Reader*> readers_;
    bool closed_ = false;
    bool hurry_ = false;
    Signal changed_;
};

}  // namespace cloister::engine
