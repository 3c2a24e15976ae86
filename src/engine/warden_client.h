// WardenClient: requests to the warden and their replies, over one SOCK_SEQPACKET connection that
// is made again when it breaks. Requests may overlap: a reply finds its request by the tag.
//
//     auto client = std::make_shared<WardenClient>(layout::warden_socket(data));
//     client->on_ended([](std::string sandbox) { … });
//     client->on_connected([] { … });      // reconcile
//     client->start();
//     Result<void> made = co_await client->create(plan);
//
// Without a connection every request fails at once with Unavailable; what the warden did with a
// request that broke off is unknown until the next list(). Threading: the loop's thread.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/limits.h"
#include "base/result.h"
#include "loop/loop.h"
#include "wire/warden.h"

namespace cloister::engine {

class WardenClient : public std::enable_shared_from_this<WardenClient> {
  public:
    explicit WardenClient(std::string socket_path, int64_t timeout_ms = limits::kWardenTimeoutMs);

    // A sandbox ended by itself. Called once for each.
    void on_ended(std::function<void(std::string)> then) { on_ended_ = std::move(then); }
    // There is a connection (again), and hello was answered.
    void on_connected(std::function<void()> then) { on_connected_ = std::move(then); }
    void start();
    void stop();
    // Waits until the warden is there: it may just be starting, or starting again. Unavailable if
    // it does not come.
    Task<Result<void>> connected();

    Task<Result<warden::HelloReply>> hello();
    Task<Result<void>> create(warden::JailPlan plan);
    Task<Result<void>> destroy(std::string sandbox);
    Task<Result<std::vector<std::string>>> list();
    Task<Result<warden::UsageReply>> usage(std::string sandbox);
    Task<Result<warden::PoolReply>> pool();
    // 0 puts the limit of the plan back.
    Task<Result<void>> narrow(std::string sandbox, uint64_t memory_max, uint32_t pids_max);
    // The way out of a running sandbox, as descriptors of warden::PathFd; none for PathKind::None.
    Task<Result<std::vector<os::Fd>>> network(std::string sandbox, warden::PathKind kind);
    Task<Result<void>> freeze(std::string sandbox);
    Task<Result<void>> thaw(std::string sandbox);
    // Starts the processes of one that has ended, on its files.
    Task<Result<void>> revive(std::string sandbox);
    // The revision of a built-in template, from the newest hello; Unavailable before the first one,
    // InvalidArgument if its image was not built on this host.
    Result<warden::Id> built_in_template(std::string_view name) const;

  private:
    struct Pending {
        std::vector<warden::Reply> replies;
        std::optional<Result<void>> end;
        std::vector<os::Fd> fds;
        Signal changed;
    };

    static Task<void> keep_connected(std::shared_ptr<WardenClient> self);
    static Task<void> announce(std::shared_ptr<WardenClient> self);
    Task<void> read_until_broken();
    void take(const warden::Reply& reply, std::vector<os::Fd> fds);
    void finish(uint64_t tag, Result<void> end);
    void fail_all();
    Task<Result<std::shared_ptr<Pending>>> ask_whole(uint64_t tag, std::string message);
    Task<Result<std::vector<warden::Reply>>> ask(uint64_t tag, std::string message);
    // For requests that one reply of a kind answers.
    template <class T>
    Task<Result<T>> ask_for(uint64_t tag, std::string message);
    // For those that are answered with Done.
    Task<Result<void>> ask_done(uint64_t tag, warden::Request request);
    Task<Result<void>> set_frozen(std::string sandbox, uint32_t frozen);
    Task<void> send_queued();
    uint64_t next_tag() { return ++last_tag_; }

    const std::string socket_path_;
    const int64_t timeout_ms_;
    std::function<void(std::string)> on_ended_;
    std::function<void()> on_connected_;
    std::shared_ptr<UnixStream> stream_;  // null without a connection
    bool known_ = false;                  // the warden behind this connection has answered hello
    Signal became_known_;
    std::deque<std::string> outgoing_;
    bool sending_ = false;
    bool stopped_ = false;
    uint64_t last_tag_ = 0;
    std::map<uint64_t, std::shared_ptr<Pending>> pending_;
    std::optional<decltype(warden::HelloReply::templates)> templates_;
};

}  // namespace cloister::engine
