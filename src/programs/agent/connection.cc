#include "programs/agent/connection.h"

#include <poll.h>
#include <sys/socket.h>

#include "base/limits.h"

namespace cloister::agent {
namespace {

// Whether nobody can read any more what is sent: the other end has closed both directions.
bool hung_up(const os::Fd& socket) {
    pollfd entry{.fd = socket.get(), .events = 0, .revents = 0};
    return ::poll(&entry, 1, 0) > 0 && (entry.revents & (POLLHUP | POLLERR)) != 0;
}

}  // namespace

Connection::Connection(os::Fd socket, os::Poller& poller, Budget& budget)
    : socket_(std::move(socket)), poller_(poller), reader_(budget, limits::kAgentRequestMax) {
    poller_.watch(socket_, [this] { on_ready(); });
}

Connection::~Connection() {
    if (socket_.open()) poller_.unwatch(socket_);
}

void Connection::send(FrameKind kind, std::string_view payload, Haste haste) {
    if (done_) return;
    out_.append(frame_header(kind, payload.size()));
    out_.append(payload);
    push(haste);
}

void Connection::send_json(const HeldMessage& message,
                           std::initializer_list<std::string_view> parts, Haste haste) {
    if (done_) return;
    size_t size = 0;
    for (const std::string_view part : parts) size += part.size();
    out_.append(frame_header(FrameKind::Json, size));
    for (const std::string_view part : parts) out_.append(message, part);
    push(haste);
}

void Connection::push(Haste haste) {
    if (haste == Haste::Now) return flush();
    holding_ = true;
}

void Connection::send_bytes(std::string_view frames) {
    if (done_) return;
    out_.append(frames);
    flush();
}

void Connection::answer(std::string_view json) {
    send(FrameKind::Json, json);
    finish();
}

void Connection::finish() {
    finishing_ = true;
    flush();
}

void Connection::set_free() {
    if (done_ || input_ended_ || !on_free) return finish();
    flush();
    set_reading(Reading::On);
    on_free();
}

void Connection::cut_off() {
    on_frame = nullptr;
    on_input_end = on_gone = on_free = nullptr;
    lose();
}

os::Fd Connection::hand_over() {
    poller_.unwatch(socket_);
    done_ = true;
    return std::move(socket_);
}

void Connection::set_reading(Reading reading) {
    reading_ = reading;
    update_interest();
}

void Connection::set_send_buffer(int bytes) const {
    // Without it there is only more memory in use.
    (void)::setsockopt(socket_.get(), SOL_SOCKET, SO_SNDBUF, &bytes, sizeof(bytes));
}

void Connection::retry_if_starved() {
    if (!starved_) return;
    starved_ = false;
    on_ready();
}

void Connection::on_ready() {
    flush();
    if (!done_ && !input_ended_ && reading_ == Reading::On) read_frame();
    update_interest();
}

void Connection::read_frame() {
    const auto state = reader_.read(socket_);
    if (!state) return lose();
    switch (*state) {
        case ReadState::More:
            return;
        case ReadState::NoRoom:
            starved_ = true;
            return;
        case ReadState::Whole: {
            const HeldMessage frame = reader_.take();
            if (const auto call = on_frame) call(frame);  // a copy: the call may replace it
            return;
        }
        case ReadState::Closed:
            input_ended_ = true;
            if (hung_up(socket_)) return lose();
            if (const auto call = on_input_end) call();
            return;
    }
}

void Connection::flush() {
    if (done_) return;
    holding_ = false;
    if (!out_.write_to(socket_)) return lose();
    if (finishing_ && out_.size() == 0) {
        poller_.unwatch(socket_);
        socket_.reset();
        done_ = true;
        return;
    }
    update_interest();
}

void Connection::lose() {
    if (done_) return;
    done_ = true;
    out_.clear();
    poller_.unwatch(socket_);
    socket_.reset();
    if (const auto call = on_gone) call();
}

void Connection::update_interest() {
    if (done_) return;
    const bool read = reading_ == Reading::On && !starved_ && !input_ended_;
    const bool write = out_.size() > 0 && !holding_;
    poller_.set_interest(socket_, read && write ? os::Interest::ReadWrite
                                  : read        ? os::Interest::Read
                                  : write       ? os::Interest::Write
                                                : os::Interest::None);
}

}  // namespace cloister::agent
