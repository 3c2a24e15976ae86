#include "jail/import.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <functional>
#include <vector>

#include "base/ids.h"
#include "base/limits.h"
#include "jail/template_root.h"
#include "os/btrfs.h"
#include "os/process.h"
#include "wire/layout.h"
#include "wire/templates.h"

namespace cloister::jail {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kImageSuffix = ".tar.zst";
constexpr size_t kImageHash = 12;

// Makes `name` in `directory`: empty, or a copy of the subvolume `from`.
Result<void> begin_subvolume(const os::Fd& directory, const std::string& name,
                             const std::string& from) {
    if (from.empty()) return os::create_subvolume(directory, name);
    auto source = os::open_at(directory, from, O_RDONLY | O_DIRECTORY);
    if (!source) {
        return make_error(ErrorKind::InvalidArgument,
                          "the image is a layer on " + from +
                              ", which is not in the pool: give the image of its base, too");
    }
    return os::snapshot_subvolume(*source, directory, name, os::Access::ReadWrite);
}

// Makes subvolume `parent`/`id` by filling a partial one, which begins as a copy of `from` if that
// is not empty, and renames it when it is on disk.
Result<void> import_as(const Pool& pool, const char* parent, const std::string& id,
                       const std::string& from,
                       const std::function<Result<void>(const os::Fd&)>& fill) {
    const os::Fd directory = TRY(pool.directory(parent));
    const std::string partial = id + ".partial";
    TRY_OK(os::delete_subvolume(directory, partial));
    TRY_OK(begin_subvolume(directory, partial, from));
    const os::Fd subvolume = TRY(os::open_at(directory, partial, O_RDONLY | O_DIRECTORY));
    TRY_OK(fill(subvolume));
    if (::fchmod(subvolume.get(), 0755) != 0) return last_os_failure("opening " + id);
    TRY_OK(os::make_read_only(subvolume));
    TRY_OK(pool.sync());
    if (::renameat(directory.get(), partial.c_str(), directory.get(), id.c_str()) != 0) {
        return last_os_failure("renaming " + partial);
    }
    return pool.sync();
}

bool there(const Pool& pool, const char* parent, const std::string& id) {
    return pool.directory(std::string(parent) + "/" + id).has_value();
}

std::string path_of(const os::Fd& directory) {
    return "/proc/self/fd/" + std::to_string(directory.get());
}

bool mapped(uint32_t id) {
    return id < limits::kLowIds ||
           (id >= limits::kHighIdFirst && id < limits::kHighIdFirst + limits::kHighIds);
}

// Looks at every file of an unpacked image: counts owners that no sandbox maps, refuses device
// nodes.
Result<uint64_t> inspect(const std::string& root) {
    uint64_t foreign = 0;
    std::error_code failed;
    const fs::recursive_directory_iterator end;
    for (fs::recursive_directory_iterator entry(root + "/", failed); !failed && entry != end;
         entry.increment(failed)) {
        struct stat file{};
        if (::lstat(entry->path().c_str(), &file) != 0)
            return last_os_failure("looking at " + entry->path().string());
        if (S_ISCHR(file.st_mode) || S_ISBLK(file.st_mode)) {
            return make_error(ErrorKind::InvalidArgument,
                              "the image holds a device node, " +
                                  entry->path().lexically_relative(root).string() +
                                  ": build it without");
        }
        if (!mapped(file.st_uid) || !mapped(file.st_gid)) ++foreign;
    }
    if (failed) return os_failure("looking through the image", failed.value());
    return foreign;
}

Result<void> unpack(const std::string& archive, const os::Fd& target) {
    // The descriptor's own path means nothing to another process; a resolved one does.
    std::error_code unreadable;
    const std::string directory = fs::read_symlink(path_of(target), unreadable);
    if (unreadable) return os_failure("finding the new template", unreadable.value());
    return os::run_program({"tar", "--extract", "--zstd", "--file", archive, "--directory",
                            directory, "--numeric-owner", "--preserve-permissions", "--no-xattrs",
                            "--no-acls", "--no-selinux", "--delay-directory-restore"});
}

// Two independent FNV-1a sums: enough to tell builds of one project apart; nobody gains by a
// collision.
class Digest {
  public:
    void add(std::string_view bytes) {
        for (const char c : bytes) {
            const auto byte = static_cast<unsigned char>(c);
            first_ = (first_ ^ byte) * kPrime;
            second_ = (second_ ^ (byte + 0x55u)) * kPrime;
        }
        add_length(bytes.size());
    }
    // 'r' and 19 letters and digits.
    std::string id() const {
        constexpr std::string_view kDigits = "0123456789abcdefghijklmnopqrstuvwxyz";
        std::string out = "r";
        uint64_t words[2] = {first_, second_};
        while (out.size() < kIdLength) {
            uint64_t& word = words[out.size() % 2];
            out += kDigits[word % kDigits.size()];
            word /= kDigits.size();
        }
        return out;
    }

  private:
    static constexpr uint64_t kPrime = 0x100000001b3;
    // So that moving a byte from one string to the next changes the sum.
    void add_length(uint64_t length) {
        first_ = (first_ ^ length) * kPrime;
        second_ = (second_ ^ (length + 1)) * kPrime;
    }
    uint64_t first_ = 0xcbf29ce484222325;
    uint64_t second_ = 0x84222325cbf29ce4;
};

constexpr std::string_view kAgentFile = "bin/cloister-agent";
// Of an owner that no sandbox maps, and executable only: then the kernel gives what /proc tells of
// the agent's process to nobody inside, not even to root.
constexpr mode_t kAgentMode = 0711;
constexpr uid_t kAgentOwner = limits::kLowIds;

constexpr size_t kCaBundleMax = 4 * limits::kMiB;

struct RuntimeFile {
    std::string path;  // relative
    std::string bytes;
    mode_t mode = 0644;
};

Result<RuntimeFile> read_runtime_file(const fs::path& root, const fs::directory_entry& entry) {
    std::error_code failed;
    const bool executable =
        (entry.status(failed).permissions() & fs::perms::owner_exec) != fs::perms::none;
    RuntimeFile file{.path = entry.path().lexically_relative(root),
                     .bytes = TRY(os::read_file(entry.path(), limits::kRuntimeBytesMax)),
                     .mode = static_cast<mode_t>(executable ? 0755 : 0644)};
    if (file.path == kAgentFile) file.mode = kAgentMode;
    return file;
}

// The regular files of the runtime tree, in a fixed order.
Result<std::vector<RuntimeFile>> read_runtime(const std::string& directory) {
    std::vector<RuntimeFile> files;
    uint64_t bytes = 0;
    std::error_code failed;
    const fs::recursive_directory_iterator end;
    for (fs::recursive_directory_iterator entry(directory, failed); !failed && entry != end;
         entry.increment(failed)) {
        if (!entry->is_regular_file(failed) || entry->path().filename() == ".stamp") continue;
        files.push_back(TRY(read_runtime_file(directory, *entry)));
        bytes += files.back().bytes.size();
        if (files.size() > limits::kRuntimeFilesMax || bytes > limits::kRuntimeBytesMax) {
            return make_error(ErrorKind::TooLarge,
                              directory + " is too large for a sandbox runtime");
        }
    }
    if (failed) return os_failure("reading the runtime " + directory, failed.value());
    std::ranges::sort(files, {}, &RuntimeFile::path);
    return files;
}

Result<RuntimeFile> read_ca_bundle(const std::string& path) {
    RuntimeFile file{.path = layout::kCaBundle, .bytes = TRY(os::read_file(path, kCaBundleMax))};
    if (file.bytes.find("-----BEGIN CERTIFICATE-----") != std::string::npos) return file;
    return make_error(ErrorKind::InvalidArgument, path + " holds no certificate (PEM)");
}

bool has_agent(const std::vector<RuntimeFile>& files) {
    return std::ranges::find(files, kAgentFile, &RuntimeFile::path) != files.end();
}

std::string digest_of(const std::vector<RuntimeFile>& files) {
    Digest digest;
    for (const RuntimeFile& file : files) {
        digest.add(file.path);
        digest.add(file.bytes);
        digest.add(std::to_string(file.mode));
    }
    return digest.id();
}

Result<void> write_runtime(const os::Fd& target, const std::vector<RuntimeFile>& files) {
    ::umask(022);  // the tree is for any user inside, whatever our caller keeps private
    for (const RuntimeFile& file : files) {
        const fs::path path = path_of(target) + "/" + file.path;
        std::error_code failed;
        fs::create_directories(path.parent_path(), failed);
        if (failed) return os_failure("making " + path.parent_path().string(), failed.value());
        const os::Fd copy = TRY(os::open_file(path, O_WRONLY | O_CREAT | O_EXCL, file.mode));
        TRY_OK(os::write_all(copy, file.bytes));
        if (file.path == kAgentFile && ::fchown(copy.get(), kAgentOwner, kAgentOwner) != 0) {
            return last_os_failure("giving the agent's program away");
        }
    }
    return {};
}

// The hash behind the dash at `dash`; empty if there is none.
std::string_view hash_at(std::string_view stem, size_t dash) {
    if (dash >= stem.size() || stem[dash] != '-') return {};
    const std::string_view hash = stem.substr(dash + 1, kImageHash);
    const bool whole = hash.size() == kImageHash &&
                       hash.find_first_not_of("0123456789abcdef") == std::string_view::npos;
    return whole ? hash : std::string_view();
}

// An id: name and hash, filled up.
std::string revision_of(std::string_view built_in, std::string_view hash) {
    std::string revision(built_in);
    revision += hash;
    revision.resize(kIdLength, '0');
    return revision;
}

}  // namespace

Result<ImageName> name_of_image(const std::string& path) {
    const std::string file = fs::path(path).filename();
    const std::string_view stem = std::string_view(file).substr(
        0, file.ends_with(kImageSuffix) ? file.size() - kImageSuffix.size() : 0);
    const size_t dash = std::min(stem.find('-'), stem.size());
    const auto built_in = find_built_in_template(stem.substr(0, dash));
    const std::string_view hash = hash_at(stem, dash), base = hash_at(stem, dash + 1 + kImageHash);
    const bool is_layer = built_in.value_or(0) != 0;
    const size_t length = dash + (is_layer ? 2 : 1) * (1 + kImageHash);
    if (!built_in || hash.empty() || base.empty() == is_layer || stem.size() != length) {
        return make_error(ErrorKind::InvalidArgument,
                          "the image file " + file +
                              " must be called base-HASH.tar.zst, or NAME-HASH-BASEHASH.tar.zst "
                              "for a layer, each hash 12 hex digits");
    }
    ImageName name{.built_in = std::string(stem.substr(0, dash)), .revision = {}, .base = {}};
    name.revision = revision_of(name.built_in, hash);
    if (is_layer) name.base = revision_of(kBuiltInTemplates[0].name, base);
    return name;
}

Result<Imported> import_image(const Pool& pool, const std::string& path) {
    const ImageName name = TRY(name_of_image(path));
    Imported imported{.id = name.revision};
    imported.was_there = there(pool, kTemplates, imported.id);
    if (!imported.was_there) {
        const auto fill = [&](const os::Fd& target) -> Result<void> {
            TRY_OK(unpack(path, target));
            TRY_OK(check_template_root(target));
            imported.foreign_ids = TRY(inspect(path_of(target)));
            return {};
        };
        TRY_OK(import_as(pool, kTemplates, imported.id, name.base, fill));
    }
    TRY_OK(pool.set_built_in_template(name.built_in, imported.id));
    return imported;
}

Result<Imported> import_runtime(const Pool& pool, const std::string& directory,
                                const std::string& ca_bundle) {
    std::vector<RuntimeFile> files = TRY(read_runtime(directory));
    if (!ca_bundle.empty()) files.push_back(TRY(read_ca_bundle(ca_bundle)));
    if (!has_agent(files)) {
        return make_error(
            ErrorKind::InvalidArgument,
            directory + " holds no bin/cloister-agent: give the `runtime` directory of a build");
    }
    Imported imported{.id = digest_of(files)};
    imported.was_there = there(pool, kRuntimes, imported.id);
    if (imported.was_there) return imported;
    TRY_OK(import_as(pool, kRuntimes, imported.id, "",
                     [&](const os::Fd& target) { return write_runtime(target, files); }));
    return imported;
}

}  // namespace cloister::jail
