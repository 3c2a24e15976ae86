#include "programs/warden/recover.h"

#include <algorithm>
#include <filesystem>
#include <functional>
#include <set>
#include <utility>

#include "base/ids.h"
#include "base/log.h"
#include "os/btrfs.h"
#include "wire/layout.h"

namespace cloister::warden {
namespace {

namespace fs = std::filesystem;

// --- Nests ---

Result<Nest> take_over_nest(const jail::Host& host, const std::string& id, const NestEntry& entry) {
    os::FoundProcess reaper =
        TRY(os::find_first_process(host.cgroups.processes(jail::reaper_group(id)), entry.first_id));
    return Nest{
        .id = id,
        .entry = entry,
        .ids = jail::IdRange::of_nest(entry.first_id),
        .process = TRY(jail::adopt_nest(std::move(reaper), layout::nest_socket(host.data, id)))};
}

std::list<Nest> take_over_nests(const jail::Host& host, const Book& book) {
    std::list<Nest> nests;
    for (const auto& [id, entry] : book.nests) {
        auto nest = take_over_nest(host, id, entry);
        if (nest)
            nests.push_back(std::move(*nest));
        else
            log_warn("a nest of a former warden is gone",
                     {{"nest", id}, {"reason", nest.error().message}});
    }
    return nests;
}

// Removes the groups that belong to no nest of ours, and kills who is in them.
Result<void> sweep_nests(const jail::Host& host, Journal& journal, const std::list<Nest>& kept) {
    const auto lives = [&](const std::string& id) {
        return std::ranges::find(kept, id, &Nest::id) != kept.end();
    };
    for (const std::string& group : host.cgroups.groups()) {
        if (lives(group)) continue;
        log_warn("removing what a former warden left", {{"nest", group}});
        TRY_OK(jail::remove_nest_objects(host, group));
    }
    const Book book = journal.book();
    for (const auto& [id, entry] : book.nests) {
        if (!lives(id)) TRY_OK(journal.nest_gone(id));
    }
    return {};
}

// --- Sandboxes ---

RecoveredSandbox take_over(const jail::Host& host, const SandboxEntry& entry, const Nest* nest) {
    RecoveredSandbox sandbox{
        .plan = entry.plan, .nest = entry.nest, .slot = entry.slot, .process = {}};
    if (nest == nullptr) return sandbox;
    const jail::Placement placement{
        .nest = entry.nest, .first_id = nest->ids.first(), .slot = entry.slot};
    auto process = jail::find_sandbox_process(host.cgroups, placement, entry.plan.sandbox.view());
    if (process) sandbox.process = std::move(*process);
    return sandbox;
}

// Its start on kept files broke off: it has ended, as before.
Result<RecoveredSandbox> give_up_revival(const jail::Host& host, Journal& journal,
                                         const SandboxEntry& entry) {
    const std::string id(entry.plan.sandbox.view());
    TRY_OK(jail::remove_sandbox_processes(host, entry.nest, id));
    TRY_OK(journal.running(id));
    return RecoveredSandbox{
        .plan = entry.plan, .nest = entry.nest, .slot = entry.slot, .process = {}};
}

Result<void> remove_half_made(const jail::Host& host, Journal& journal, const std::string& id,
                              const SandboxEntry& entry) {
    log_warn("removing a sandbox that a former warden left half made or half removed",
             {{"sandbox", id}, {"nest", entry.nest}});
    TRY_OK(jail::remove_sandbox_objects(host, entry.nest, id));
    return journal.gone(id);
}

// Groups in a nest that lives whose sandbox is none of ours.
Result<void> sweep_groups_of(const jail::Host& host, const Nest& nest,
                             const std::set<std::string>& kept) {
    for (const std::string& group : host.cgroups.groups(nest.id)) {
        const std::string path = jail::sandbox_group(nest.id, group);
        if (path == jail::reaper_group(nest.id) || path == jail::zygote_group(nest.id)) continue;
        if (!kept.contains(group)) TRY_OK(host.cgroups.remove(jail::sandbox_group(nest.id, group)));
    }
    return {};
}

// --- Files and sockets, found by name ---

Result<void> sweep_subvolumes(const jail::Pool& pool, const std::string& parent,
                              const std::function<bool(const std::string&)>& keep) {
    const os::Fd directory = TRY(pool.directory(parent));
    for (const std::string& name : TRY(pool.list(parent))) {
        if (!keep(name)) TRY_OK(os::delete_subvolume(directory, name));
    }
    return {};
}

Result<void> sweep_files(const jail::Pool& pool, const std::set<std::string>& sandboxes) {
    const auto of_ours = [&](const std::string& name) { return sandboxes.contains(name); };
    const auto whole = [](const std::string& name) { return !name.ends_with(".partial"); };
    TRY_OK(sweep_subvolumes(pool, jail::kSandboxes, of_ours));
    TRY_OK(sweep_subvolumes(pool, jail::kSpools, of_ours));
    TRY_OK(sweep_subvolumes(pool, jail::kTemplates, whole));
    return sweep_subvolumes(pool, jail::kRuntimes, whole);
}

Result<void> sweep_sockets(const std::string& directory, const std::set<std::string>& kept) {
    std::error_code failed;
    std::vector<fs::path> old;
    for (const auto& entry : fs::directory_iterator(directory, failed)) {
        if (!kept.contains(entry.path().stem())) old.push_back(entry.path());
    }
    for (const fs::path& path : old) fs::remove(path, failed);
    if (failed) return os_failure("removing old sockets", failed.value());
    return {};
}

std::set<std::string> names_of(const std::list<Nest>& nests) {
    std::set<std::string> names;
    for (const Nest& nest : nests) names.insert(nest.id);
    return names;
}

std::set<std::string> images_in_use(const Recovered& recovered) {
    std::set<std::string> used;
    for (const Nest& nest : recovered.nests) {
        used.emplace(nest.entry.template_revision.view());
        used.insert(nest.entry.runtime);
    }
    for (const RecoveredSandbox& sandbox : recovered.sandboxes)
        used.emplace(sandbox.plan.template_revision.view());
    return used;
}

}  // namespace

Result<Recovered> recover(const jail::Host& host, Journal& journal) {
    Recovered recovered{.nests = take_over_nests(host, journal.book()), .sandboxes = {}};
    TRY_OK(sweep_nests(host, journal, recovered.nests));
    std::set<std::string> kept;
    const Book book = journal.book();
    for (const auto& [id, entry] : book.sandboxes) {
        if (entry.progress == Progress::Reviving) {
            recovered.sandboxes.push_back(TRY(give_up_revival(host, journal, entry)));
            kept.insert(id);
            continue;
        }
        if (entry.progress != Progress::Running) {
            TRY_OK(remove_half_made(host, journal, id, entry));
            continue;
        }
        const auto nest = std::ranges::find(recovered.nests, entry.nest, &Nest::id);
        recovered.sandboxes.push_back(
            take_over(host, entry, nest == recovered.nests.end() ? nullptr : &*nest));
        kept.insert(id);
    }
    for (const Nest& nest : recovered.nests) TRY_OK(sweep_groups_of(host, nest, kept));
    TRY_OK(sweep_files(host.pool, kept));
    TRY_OK(sweep_sockets(layout::agents_directory(host.data), kept));
    TRY_OK(sweep_sockets(layout::nests_directory(host.data), names_of(recovered.nests)));
    return recovered;
}

Result<void> remove_old_images(const jail::Host& host, std::span<const std::string> templates,
                               const Recovered& recovered) {
    std::set<std::string> used = images_in_use(recovered);
    used.insert(templates.begin(), templates.end());
    used.insert(host.runtime);
    // Whatever is not named by an id is no image: `templates/base`.
    const auto keep = [&](const std::string& name) { return !is_id(name) || used.contains(name); };
    for (const std::string& project : TRY(host.pool.list(jail::kProjects))) {
        TRY_OK(sweep_subvolumes(host.pool, jail::kProjects + ("/" + project), keep));
    }
    TRY_OK(sweep_subvolumes(host.pool, jail::kTemplates, keep));
    return sweep_subvolumes(host.pool, jail::kRuntimes, keep);
}

}  // namespace cloister::warden
