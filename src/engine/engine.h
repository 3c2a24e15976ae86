// Engine: the nouns of the service put together, and what has to happen at start, from time to
// time, and at the end.
//
//     auto engine = TRY(Engine::create(data));
//     engine->start();                       // on the running loop
//     co_await engine->recovered();          // before clients are let in
//     …
//     co_await engine->shut_down();
//
// Threading: the loop's thread.
#pragma once

#include <memory>
#include <string>

#include "base/result.h"
#include "engine/artifacts.h"
#include "engine/contexts.h"
#include "engine/keys.h"
#include "engine/one_call.h"
#include "engine/recovery.h"
#include "engine/runs.h"
#include "engine/sandboxes.h"
#include "engine/signed_url.h"
#include "engine/warden_client.h"
#include "store/store.h"

namespace cloister::engine {

struct EngineConfig {
    LifeConfig life;
    NetworkSettings network;
};

class Engine : public std::enable_shared_from_this<Engine> {
  public:
    // Opens the state under `data`.
    static Result<std::shared_ptr<Engine>> create(std::string data, EngineConfig config = {});

    void start();
    // Until what a former server left is taken over; bounded, the rest goes on in the background.
    Task<void> recovered();
    // Nothing new is taken from here on.
    void drain() { draining_ = true; }
    bool draining() const { return draining_; }
    // Stops the runs (`cancelled`), then kills all sandboxes.
    Task<void> shut_down();

    // Unavailable while draining.
    Result<void> check_open() const;
    // The built-in project of a service without tenants.
    const std::string& local_project() const { return local_project_; }
    KeyRing& keys() { return *keys_; }
    const UrlSigner& url_signer() const { return *url_signer_; }
    Sandboxes& sandboxes() { return *sandboxes_; }
    const std::shared_ptr<Sandboxes>& shared_sandboxes() { return sandboxes_; }
    Contexts& contexts() { return *contexts_; }
    Runs& runs() { return *runs_; }
    const Artifacts& artifacts() const { return *artifacts_; }
    WardenClient& warden() { return *warden_; }
    EgressClient& egress() { return *egress_; }
    // What no policy may open.
    const std::shared_ptr<const egress::Platform>& platform() const { return platform_; }
    const NetworkSettings& network_settings() const { return network_; }
    OneCallParts one_call_parts() const { return {sandboxes_, contexts_, runs_, artifacts_}; }
    bool quiet() const { return sandboxes_->live() == 0 && runs_->active() == 0; }
    int64_t started_at() const { return started_at_; }  // steady

  private:
    Engine(std::string data, EngineConfig config);
    Result<void> open();
    static Task<void> keep_watch(std::shared_ptr<Engine> self);
    static Task<void> keep_house(std::shared_ptr<Engine> self);

    const std::string data_;
    const EngineConfig config_;
    const int64_t started_at_;
    std::shared_ptr<store::Store> store_;
    std::string local_project_;
    std::unique_ptr<KeyRing> keys_;
    std::unique_ptr<UrlSigner> url_signer_;
    std::shared_ptr<WardenClient> warden_;
    std::shared_ptr<EgressClient> egress_;
    std::shared_ptr<const egress::Platform> platform_;
    std::shared_ptr<Sandboxes> sandboxes_;
    std::shared_ptr<Contexts> contexts_;
    std::shared_ptr<Runs> runs_;
    std::shared_ptr<const Artifacts> artifacts_;
    std::shared_ptr<Recovery> recovery_;
    bool draining_ = false;
    bool stopped_ = false;
};

}  // namespace cloister::engine
