#include "engine/contexts.h"

#include <fmt/format.h>

#include "base/ids.h"
#include "base/time.h"
#include "engine/string_map.h"

namespace cloister::engine {
namespace {

ContextSpec spec_of(const store::ContextRow& row) {
    return {
        .language = row.language,
        .cwd = row.cwd,
        .env = map_from(row.env),
        .origin = row.is_default != 0 ? ContextSpec::Origin::Default : ContextSpec::Origin::Asked};
}

}  // namespace

store::ContextRow row_of(const Sandbox& sandbox, const std::string& id, int64_t created_ms,
                         const ContextSpec& spec) {
    return {.project = sandbox.project(),
            .sandbox = sandbox.id(),
            .id = id,
            .language = spec.language,
            .cwd = spec.cwd,
            .env = map_text(spec.env),
            .created_ms = created_ms,
            .is_default = spec.origin == ContextSpec::Origin::Default ? 1 : 0};
}

Result<std::shared_ptr<Context>> Contexts::create(Sandbox& sandbox, ContextSpec spec) {
    if (sandbox.contexts().size() >= limits::kContextsMax) {
        return make_error(ErrorKind::ResourceExhausted,
                          fmt::format("the sandbox has {} contexts already: delete some, or use "
                                      "another sandbox",
                                      sandbox.contexts().size()));
    }
    Context::Name name{.id = new_id(), .created_ms = unix_ms()};
    TRY_OK(store_->add_context(row_of(sandbox, name.id, name.created_ms, spec)));
    return sandbox.add_context(std::move(name), std::move(spec));
}

Result<std::shared_ptr<Context>> Contexts::of_run(Sandbox& sandbox, RunSpec& run) {
    if (run.context_id.empty()) {
        if (run.language.empty()) run.language = ContextSpec().language;
        if (auto context = sandbox.default_context(run.language)) return context;
        return create(sandbox, {.language = run.language, .origin = ContextSpec::Origin::Default});
    }
    auto context = TRY(find(sandbox, run.context_id));
    if (!run.language.empty() && run.language != context->spec().language) {
        return invalid_field("language",
                             fmt::format("`language` is {}, but the context {} is one of {}: leave "
                                         "`language` out",
                                         run.language, context->id(), context->spec().language));
    }
    run.language = context->spec().language;
    return context;
}

Result<std::shared_ptr<Context>> Contexts::find(const Sandbox& sandbox, std::string_view id) {
    if (auto context = sandbox.find_context(id)) return context;
    return make_error(ErrorKind::NotFound,
                      fmt::format("no context `{}` in this sandbox: GET "
                                  "/v1/sandboxes/{}/contexts lists those that there are",
                                  id, sandbox.id()));
}

Result<void> Contexts::forget(Sandbox& sandbox, const Context& context) {
    const std::string& id = context.id();
    TRY_OK(store_->remove_context(sandbox.project(), sandbox.id(), id));
    sandbox.remove_context(id);
    return {};
}

Result<void> Contexts::load(Sandbox& sandbox) {
    for (const store::ContextRow& row : TRY(store_->contexts_of(sandbox.project(), sandbox.id()))) {
        sandbox.add_context({.id = row.id, .created_ms = row.created_ms}, spec_of(row));
    }
    return {};
}

}  // namespace cloister::engine
