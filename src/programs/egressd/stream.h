// One connection out of a sandbox: who it is for, whether it may be made, and what it carries.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "egress/http_requests.h"
#include "programs/egressd/opening.h"
#include "programs/egressd/sandbox_net.h"

namespace cloister::egressd {

class Stream : public std::enable_shared_from_this<Stream> {
  public:
    static Result<std::shared_ptr<Stream>> create(std::shared_ptr<SandboxNet> net, os::Fd client,
                                                  const Endpoint& wanted);
    static Task<void> run(std::shared_ptr<Stream> self);

    // The policy has changed: what it no longer allows is cut.
    void judge_again();
    void cut(std::string reason);
    void expire(int64_t now_ms);

  private:
    // Whom to connect to, and why; or why not.
    struct Route {
        egress::Verdict verdict;
        std::vector<Endpoint> to;
    };
    struct Direction {
        std::shared_ptr<Descriptor> from, to;
        uint64_t& bytes;
    };
    enum class Upgrade { None, Asked, Refused, Agreed };

    Stream(std::shared_ptr<SandboxNet> net, std::shared_ptr<Descriptor> client,
           const Endpoint& wanted);
    Task<void> carry();
    Task<Result<Route>> find_route();
    Route route_by_names() const;
    Task<Route> route_to_name();
    std::vector<Endpoint> with_others(const std::vector<std::string>& names) const;
    Task<Result<void>> dial(std::vector<Endpoint> to);
    Task<Result<void>> dial_one(Endpoint to, std::chrono::milliseconds most);
    Task<Result<void>> dial_upstream(egress::Upstream upstream, Endpoint to);
    Task<Result<void>> greet_upstream(egress::Handshake handshake);
    Task<Result<void>> pass_on(std::string_view bytes);
    static Task<void> pump(std::shared_ptr<Stream> self, Direction direction);
    static Task<void> pump_requests(std::shared_ptr<Stream> self);
    static Task<void> pump_answers(std::shared_ptr<Stream> self);
    Task<Result<void>> take_requests(std::string bytes);
    Result<void> judge_head();
    egress::Verdict judge_now() const;
    void direction_ended(const Result<void>& how);
    void tell(const egress::Verdict& verdict, std::string_view word);
    void refuse(const egress::Verdict& verdict, std::string_view word);
    void end(std::string reason);

    const std::shared_ptr<SandboxNet> net_;
    const std::shared_ptr<Descriptor> client_;
    std::shared_ptr<Descriptor> server_;
    const Endpoint wanted_;
    Endpoint dialled_;
    Opening opening_;
    egress::HttpRequests requests_;
    Upgrade upgrade_ = Upgrade::None;
    Signal upgrade_settled_;
    uint64_t record_ = 0, sent_ = 0, received_ = 0;
    int64_t began_ms_, moved_ms_;
    int open_directions_ = 0;
    bool ended_ = false;
};

}  // namespace cloister::egressd
