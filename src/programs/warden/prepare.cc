#include "programs/warden/prepare.h"

#include <fmt/format.h>

#include <cstdio>
#include <filesystem>
#include <functional>

#include "base/time.h"
#include "jail/import.h"
#include "jail/pool.h"
#include "os/file_lock.h"
#include "os/mount.h"
#include "wire/layout.h"

namespace cloister::warden {
namespace {

namespace fs = std::filesystem;

// Runs one step and says how long it took.
Result<void> step(std::string_view what, const std::function<Result<void>()>& work) {
    fmt::print(stderr, "{} …\n", what);
    const int64_t started = steady_ms();
    auto result = work();
    if (!result) return std::move(result).error().within(what);
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

void tell(const char* what, const jail::Imported& imported) {
    if (imported.was_there) fmt::print(stderr, "{} {} is there already\n", what, imported.id);
    if (imported.foreign_ids > 0) {
        fmt::print(stderr,
                   "warning: {} files of the image have an owner above 4095; they show as nobody\n",
                   imported.foreign_ids);
    }
}

Result<void> fill(const jail::Pool& pool, const PrepareOptions& options) {
    TRY_OK(step("importing the image", [&]() -> Result<void> {
        tell("template", TRY(jail::import_image(pool, options.image)));
        return {};
    }));
    return step("importing the runtime", [&]() -> Result<void> {
        tell("runtime", TRY(jail::import_runtime(pool, options.runtime)));
        return {};
    });
}

}  // namespace

Result<void> prepare(const PrepareOptions& options) {
    TRY_OK(jail::revision_of_image(options.image));
    TRY_OK(make_directories(options.data));
    const os::Fd lock = TRY(os::lock_file(layout::warden_lock(options.data)));
    TRY_OK(step("making the pool",
                [&] { return jail::make_pool_image(options.data, options.pool_bytes); }));
    TRY_OK(os::enter_private_mounts());
    jail::Pool pool = TRY(jail::Pool::mount(options.data));
    auto filled = fill(pool, options);
    TRY_OK(pool.unmount());
    return filled;
}

}  // namespace cloister::warden
