// The network of one sandbox: its listeners, its policy, and what goes on through them.
//
// Threading: the loop's thread. A SandboxNet lives as long as something of it runs; close() ends
// all of that.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "egress/policy.h"
#include "egress/upstream.h"
#include "loop/descriptor.h"
#include "programs/egressd/bucket.h"
#include "programs/egressd/limits.h"
#include "programs/egressd/pins.h"
#include "programs/egressd/record.h"
#include "programs/egressd/resolver.h"

namespace cloister::egressd {

class Stream;
class Datagrams;

// What all sandboxes share.
struct Shared {
    std::shared_ptr<Resolver> resolver;
    std::shared_ptr<const egress::Platform> platform;
    std::optional<egress::Upstream> upstream;  // TCP goes through it
    std::function<void(const Record&)> tell;
    std::function<void(const RecordEnd&)> tell_end;
    uint64_t last_record = 0;
    size_t streams = 0;
};

class SandboxNet : public std::enable_shared_from_this<SandboxNet> {
  public:
    SandboxNet(std::shared_ptr<Shared> shared, std::string id)
        : shared_(std::move(shared)), id_(std::move(id)) {}

    // Serves the descriptors of warden::PathFd; those of before are closed.
    Result<void> open(std::vector<os::Fd> path);
    // Takes effect for all that goes on: what is no longer allowed is cut before this returns.
    void set_policy(egress::PolicyStack policy);
    void close();

    const std::string& id() const { return id_; }
    const egress::PolicyStack& policy() const { return policy_; }
    // An address of the host, also one that it got a moment ago, and that the operator did not
    // open.
    bool is_host(const IpAddress& address) const;
    Shared& shared() { return *shared_; }
    Pins& pins() { return pins_; }
    bool closed() const { return closed_; }

    // Told to the log; 0 if it is full, then it is only counted.
    uint64_t tell(Record record);
    void tell_end(RecordEnd end);
    // Pays for bytes that were carried; waits while there were too many.
    Task<void> pay(size_t bytes);
    bool may_look_up();
    void forget(const std::shared_ptr<Stream>& stream);
    size_t& lookups() { return lookups_; }

  private:
    static Task<void> accept(std::shared_ptr<SandboxNet> self, std::shared_ptr<Descriptor> tcp);
    static Task<void> sweep(std::shared_ptr<SandboxNet> self);
    void take(os::Fd connection, const Endpoint& wanted);
    void close_path();

    const std::shared_ptr<Shared> shared_;
    const std::string id_;
    egress::PolicyStack policy_;
    os::Fd link_;
    std::shared_ptr<Descriptor> tcp_, names_;
    std::shared_ptr<Datagrams> datagrams_;
    std::set<std::shared_ptr<Stream>> streams_;
    Pins pins_;
    Bucket new_streams_{kStreamsPerSecond, kStreamsBurst};
    Bucket new_lookups_{kLookupsPerSecond, kLookupsBurst};
    Bucket bytes_{kBytesPerSecond, kBytesBurst};
    Bucket records_{kRecordsPerSecond, kRecordsBurst};
    size_t lookups_ = 0;
    bool sweeping_ = false;
    bool closed_ = false;
};

// "1.2.3.4" of an endpoint that is the resolver inside.
inline bool is_resolver(const Endpoint& endpoint) {
    return endpoint == Endpoint{.address = IpAddress::v4(127, 0, 0, 53), .port = 53};
}

}  // namespace cloister::egressd
