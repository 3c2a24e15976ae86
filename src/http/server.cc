#include "http/server.h"

#include <algorithm>
#include <vector>

#include "base/time.h"
#include "http/connection.h"
#include "loop/tcp.h"

namespace cloister::http {
namespace {

// Connections over the limit that are being told so; beyond, they are closed without a word.
constexpr size_t kRefusalsMax = 64;
// After a failed accept (no descriptors left), so that the loop does not spin.
constexpr std::chrono::milliseconds kAcceptPause{50};

// How often deadlines are looked at: often enough for the shortest, at most once a second.
std::chrono::milliseconds sweep_period(const ServerOptions& options) {
    const int64_t shortest =
        std::min({options.header_timeout_ms, options.body_timeout_ms, options.write_timeout_ms});
    return std::chrono::milliseconds(std::clamp<int64_t>(shortest / 4, 5, 1000));
}

Task<void> sweep(std::shared_ptr<Shared> shared) {
    while (!shared->stopping || !shared->connections.empty()) {
        co_await sleep_for(sweep_period(shared->options));
        const int64_t now = steady_ms();
        for (Connection* connection : shared->connections) connection->expire(now);
    }
}

Task<void> accept_all(std::shared_ptr<Shared> shared, std::shared_ptr<TcpListener> listener) {
    while (!shared->stopping) {
        auto stream = co_await listener->accept();
        if (shared->stopping) break;
        if (!stream) {
            co_await sleep_for(kAcceptPause);
            continue;
        }
        const size_t open = shared->connections.size();
        const size_t most = shared->options.connections_max;
        if (open < most) {
            spawn(serve_connection(shared, std::move(*stream)));
        } else if (open < most + kRefusalsMax) {
            spawn(refuse_connection(shared, std::move(*stream)));
        }
    }
}

class LoopServer final : public Server {
  public:
    LoopServer(Loop& loop, std::shared_ptr<TcpListener> listener, std::shared_ptr<Shared> shared)
        : loop_(loop), listener_(std::move(listener)), shared_(std::move(shared)) {}
    LoopServer(const LoopServer&) = delete;
    LoopServer& operator=(const LoopServer&) = delete;
    ~LoopServer() override {
        stop();
        for (Connection* connection : shared_->connections) connection->close();
    }

    uint16_t port() const override { return listener_->port(); }
    void start() override {
        loop_.spawn(accept_all(shared_, listener_));
        loop_.spawn(sweep(shared_));
    }
    size_t connections() const override { return shared_->connections.size(); }
    void stop() override {
        shared_->stopping = true;
        listener_->close();
        for (Connection* connection : shared_->connections) connection->close_if_idle();
    }

  private:
    Loop& loop_;
    std::shared_ptr<TcpListener> listener_;
    std::shared_ptr<Shared> shared_;
};

}  // namespace

Result<std::unique_ptr<Server>> Server::create(Loop& loop, std::string_view listen, Handler handler,
                                               ServerOptions options) {
    TcpListener bound = TRY(TcpListener::create(loop, listen));
    auto listener = std::make_shared<TcpListener>(std::move(bound));
    auto shared = std::make_shared<Shared>();
    shared->options = options;
    shared->handler = std::move(handler);
    return std::unique_ptr<Server>(
        std::make_unique<LoopServer>(loop, std::move(listener), std::move(shared)));
}

}  // namespace cloister::http
