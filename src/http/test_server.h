// For tests of clients: a server on a free port of loopback, with a loop and a thread of its own.
#pragma once

#include <future>
#include <string>
#include <thread>
#include <utility>

#include "http/server.h"

namespace cloister::http {

class TestServer {
  public:
    explicit TestServer(Handler handler) {
        std::promise<uint16_t> ready;
        thread_ = std::thread([this, &ready, handler = std::move(handler)] {
            Loop loop;
            auto server = Server::create(loop, "127.0.0.1:0", handler);
            loop_ = &loop;
            (*server)->start();
            ready.set_value((*server)->port());
            loop.run();
        });
        url_ = "http://127.0.0.1:" + std::to_string(ready.get_future().get());
    }
    ~TestServer() {
        loop_->stop();
        thread_.join();
    }
    TestServer(const TestServer&) = delete;
    TestServer& operator=(const TestServer&) = delete;

    const std::string& url() const { return url_; }

  private:
    Loop* loop_ = nullptr;
    std::string url_;
    std::thread thread_;
};

}  // namespace cloister::http
