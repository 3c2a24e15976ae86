// Contexts: makes the interpreters of sandboxes known, finds and removes them; keeps their rows, so
// that a new server knows them.
//
// Threading: the loop's thread.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "base/result.h"
#include "engine/run.h"
#include "engine/sandbox.h"
#include "store/store.h"

namespace cloister::engine {

class Contexts {
  public:
    explicit Contexts(std::shared_ptr<store::Store> store) : store_(std::move(store)) {}

    // Its interpreter has not been started. ResourceExhausted at limits::kContextsMax.
    Result<std::shared_ptr<Context>> create(Sandbox& sandbox, ContextSpec spec);
    // The one that the run names, or the default one of its language, made if there is none. The
    // run gets its language. Errors: NotFound; InvalidArgument if that has another language.
    Result<std::shared_ptr<Context>> of_run(Sandbox& sandbox, RunSpec& run);
    static Result<std::shared_ptr<Context>> find(const Sandbox& sandbox, std::string_view id);
    // From here on nobody finds it.
    Result<void> forget(Sandbox& sandbox, const Context& context);
    // Those that a former server has made.
    Result<void> load(Sandbox& sandbox);

  private:
    const std::shared_ptr<store::Store> store_;
};

store::ContextRow row_of(const Sandbox& sandbox, const std::string& id, int64_t created_ms,
                         const ContextSpec& spec);

}  // namespace cloister::engine
