#include "http/input.h"

namespace cloister::http {

void Input::consume(size_t count) {
    CLOISTER_CHECK(!reading_ && begin_ + count <= end_);
    begin_ += count;
    if (begin_ == end_) begin_ = end_ = 0;
}

void Input::start_read() {
    if (reading_ || ended_) return;
    if (end_ == kCapacity) {
        std::memmove(storage_.get(), storage_.get() + begin_, end_ - begin_);
        end_ -= std::exchange(begin_, 0);
    }
    CLOISTER_CHECK(end_ <
                   kCapacity);  // the parser refuses a header long before it fills the buffer
    reading_ = true;
    stream_.start_read(
        {storage_.get() + end_, kCapacity - end_},
        [self = shared_from_this()](Result<size_t> got) { self->read_done(std::move(got)); });
}

void Input::read_done(Result<size_t> got) {
    reading_ = false;
    last_read_ = {};
    if (!got) {
        last_read_ = std::move(got).error();
    } else if (*got == 0) {
        last_read_ = make_error(ErrorKind::Cancelled, "the client is gone");
    } else {
        end_ += *got;
    }
    ended_ = !last_read_ && last_read_.error().kind != ErrorKind::DeadlineExceeded;
    if (ended_) tell_gone();
    read_finished_.notify_all();
}

Task<Result<void>> Input::read_more(int64_t deadline_ms) {
    if (ended_) co_return last_read_;
    start_read();
    stream_.set_read_deadline(deadline_ms);
    while (reading_) co_await read_finished_.wait();
    stream_.set_read_deadline(0);
    co_return last_read_;
}

}  // namespace cloister::http
