// ProcessLink: the standard streams of this program joined to a process in a sandbox, or to its
// terminal, until it ends.
//
//     auto link = TRY(ProcessLink::open(api, "/v1/sandboxes/…/processes/…", options));
//     const json::object process = TRY(link.follow());       // as it ended
//
// SIGINT, SIGTERM, SIGHUP and SIGQUIT go to the process; the third SIGINT kills it. With a terminal
// changes of the window's size go there, too.
#pragma once

#include <string>

#include "programs/cli/api.h"
#include "wire/json.h"

namespace cloister::cli {

struct LinkOptions {
    enum class Stdin { Open, Closed } stdin_state = Stdin::Closed;  // Open: ours is its
    enum class Terminal { No, Yes } terminal = Terminal::No;
    enum class Replay { FromStart, Screen } replay = Replay::FromStart;
};

class ProcessLink {
  public:
    static Result<ProcessLink> open(const Api& api, const std::string& process,
                                    const LinkOptions& options);

    // Unavailable if the connection broke, Cancelled if our output was closed (`… | head`); the
    // process lives on, or gets SIGHUP.
    Result<json::object> follow();

  private:
    ProcessLink(http::WebSocketClient socket, const LinkOptions& options)
        : socket_(std::move(socket)), options_(options) {}

    Result<void> wait();
    void on_stdin();
    void on_signal(int number);
    void send_size();
    Result<void> take(const http::WebSocketMessage& message);
    Result<void> take_event(std::string_view text);

    http::WebSocketClient socket_;
    const LinkOptions options_;
    os::Fd signals_;
    bool stdin_ended_ = false;
    int output_ = 1;
    int interrupts_ = 0;
    json::object ended_;  // empty: it runs
};

}  // namespace cloister::cli
