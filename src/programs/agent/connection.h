// Connection: one client of the agent, for one operation, and after a run for another one. It moves
// frames; what they mean is its owner's affair.
#pragma once

#include <functional>
#include <initializer_list>
#include <string_view>

#include "os/poller.h"
#include "programs/agent/buffers.h"
#include "wire/frame.h"

namespace cloister::agent {

// Soon: it may wait for what is sent next, so that the client wakes up once for both. Whoever says
// so calls flush() if nothing follows.
enum class Haste : uint8_t { Now, Soon };

class Connection {
  public:
    Connection(os::Fd socket, os::Poller& poller, Budget& budget);
    ~Connection();
    Connection(const Connection&) = delete;

    // What happens, told to whoever has the connection now. An owner that goes away clears these.
    std::function<void(const HeldMessage&)> on_frame;  // kind byte and payload
    std::function<void()> on_input_end;                // the client sends no more
    std::function<void()> on_gone;                     // nobody reads what is sent
    std::function<void()> on_free;                     // its operation is over

    void send(FrameKind kind, std::string_view payload, Haste haste = Haste::Now);
    // One json frame put together from texts and slices of `message`.
    void send_json(const HeldMessage& message, std::initializer_list<std::string_view> parts,
                   Haste haste = Haste::Now);
    void send_bytes(std::string_view frames);  // of frames, which may be cut anywhere
    void answer(std::string_view json);        // one json frame, then the end
    void flush();
    size_t queued() const { return out_.size(); }

    enum class Reading { On, Off };
    void set_reading(Reading reading);
    // How much may wait for the client in the kernel.
    void set_send_buffer(int bytes) const;
    // Reads on after the budget had no room, if it has now.
    void retry_if_starved();
    // Closes when all has been written.
    void finish();
    // The operation is over, and the client may ask for another one.
    void set_free();
    // Closes at once; the client sees that it has not got all.
    void cut_off();
    // Whether it is over and may be destroyed.
    bool is_done() const { return done_; }
    // The socket, for somebody else to go on with; then the connection is done.
    os::Fd hand_over();

  private:
    void on_ready();
    void read_frame();
    void push(Haste haste);
    void lose();
    void update_interest();

    os::Fd socket_;
    os::Poller& poller_;
    MessageReader reader_;
    OutQueue out_;
    Reading reading_ = Reading::On;
    bool starved_ = false;
    bool holding_ = false;  // what is in out_ waits for more
    bool input_ended_ = false;
    bool finishing_ = false;
    bool done_ = false;
};

}  // namespace cloister::agent
