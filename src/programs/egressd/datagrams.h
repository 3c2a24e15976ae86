// UDP of a sandbox whose policy is `open`: each pair of ends has a socket of its own on the host;
// answers go back through a raw socket in the sandbox, with the far end as their sender.
#pragma once

#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "programs/egressd/sandbox_net.h"

namespace cloister::egressd {

class Datagrams : public std::enable_shared_from_this<Datagrams> {
  public:
    // `path`: from warden::kPathUdp on.
    static Result<std::shared_ptr<Datagrams>> open(std::shared_ptr<SandboxNet> net,
                                                   std::vector<os::Fd> path);
    void judge_again();
    void expire(int64_t now_ms);
    void close();

  private:
    using Ends = std::pair<Endpoint, Endpoint>;  // the client's, and where it sends to
    struct Flow {
        std::shared_ptr<Descriptor> socket;
        int64_t used_ms = 0, began_ms = 0;
        uint64_t record = 0, sent = 0, received = 0;
    };
    explicit Datagrams(std::weak_ptr<SandboxNet> net) : net_(std::move(net)) {}
    static Task<void> serve(std::shared_ptr<Datagrams> self, std::shared_ptr<Descriptor> udp);
    static Task<void> answer(std::shared_ptr<Datagrams> self, std::shared_ptr<Flow> flow,
                             Ends ends);
    void take(const std::shared_ptr<SandboxNet>& net, const std::string& bytes, const Ends& ends);
    std::shared_ptr<Flow> begin(const std::shared_ptr<SandboxNet>& net, const Ends& ends);
    void end(const Ends& ends, std::string reason);

    std::weak_ptr<SandboxNet> net_;
    std::shared_ptr<Descriptor> udp_;
    os::Fd raw_v4_, raw_v6_;
    std::map<Ends, std::shared_ptr<Flow>> flows_;
};

}  // namespace cloister::egressd
