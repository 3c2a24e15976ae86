#include "programs/warden/prepare.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "base/time.h"
#include "jail/import.h"
#include "jail/pool.h"
#include "os/file_lock.h"
#include "os/mount.h"
#include "wire/layout.h"

namespace cloister::warden {
namespace {

namespace fs = std::filesystem;

enum class Needed { Yes, No };

// Runs one step. Only a step that has something to do is spoken of.
Result<void> step(std::string_view what, Needed needed, const std::function<Result<void>()>& work) {
    if (needed == Needed::Yes) fmt::print(stderr, "{} …\n", what);
    const int64_t started = steady_ms();
    auto result = work();
    if (!result) return std::move(result).error().within(what);
    if (needed == Needed::No) return {};
    fmt::print(stderr, "{}: {:.1f} s\n", what, static_cast<double>(steady_ms() - started) / 1000);
    return {};
}

Result<void> make_directories(const std::string& data) {
    std::error_code failed;
    fs::create_directories(layout::run_directory(data), failed);
    // Others pass through to what is theirs (the CLI's file, the sockets), but list nothing.
    constexpr fs::perms kPassable =
        fs::perms::owner_all | fs::perms::group_exec | fs::perms::others_exec;
    if (!failed) fs::permissions(data, kPassable, failed);
    if (failed) return os_failure("making " + data, failed.value());
    return {};
}

void warn_of(const jail::Imported& imported) {
    if (imported.foreign_ids == 0) return;
    fmt::print(stderr,
               "warning: {} files of the image have an owner above 4095; they show as nobody\n",
               imported.foreign_ids);
}

Needed needed_unless(bool there) {
    return there ? Needed::No : Needed::Yes;
}

Result<void> import(const jail::Pool& pool, const std::string& image) {
    const jail::ImageName name = TRY(jail::name_of_image(image));
    const std::vector<std::string> templates = TRY(pool.list(jail::kTemplates));
    const bool there = std::ranges::find(templates, name.revision) != templates.end();
    const std::string what = fmt::format("importing the image of {}", name.built_in);
    return step(what, needed_unless(there), [&]() -> Result<void> {
        warn_of(TRY(jail::import_image(pool, image)));
        return {};
    });
}

Result<void> fill(const jail::Pool& pool, const PrepareOptions& options) {
    for (const std::string& image : options.images) TRY_OK(import(pool, image));
    // A matter of milliseconds: a word only if it fails.
    return step("importing the runtime", Needed::No, [&]() -> Result<void> {
        warn_of(TRY(jail::import_runtime(pool, options.runtime)));
        return {};
    });
}

}  // namespace

Result<void> prepare(const PrepareOptions& options) {
    for (const std::string& image : options.images) TRY(jail::name_of_image(image));
    TRY_OK(make_directories(options.data));
    const os::Fd lock = TRY(os::lock_file(layout::warden_lock(options.data)));
    const bool made = fs::exists(layout::pool_image(options.data));
    TRY_OK(step("making the pool", needed_unless(made),
                [&] { return jail::make_pool_image(options.data, options.pool_bytes); }));
    TRY_OK(os::enter_private_mounts());
    jail::Pool pool = TRY(jail::Pool::mount(options.data));
    auto filled = fill(pool, options);
    TRY_OK(pool.unmount());
    return filled;
}

}  // namespace cloister::warden
