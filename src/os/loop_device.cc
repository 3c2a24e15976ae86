#include "os/loop_device.h"

#include <fcntl.h>
#include <linux/loop.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <optional>

namespace cloister::os {
namespace {

constexpr int kAttempts = 16;  // another program may take the free device that we were told of

Result<Fd> free_device(std::string& path) {
    const Fd control = TRY(open_file("/dev/loop-control", O_RDWR));
    const int number = ::ioctl(control.get(), LOOP_CTL_GET_FREE);
    if (number < 0) return last_os_failure("finding a free loop device");
    path = "/dev/loop" + std::to_string(number);
    return open_file(path, O_RDWR);
}

bool configure(const Fd& device, const Fd& file, const std::string& image) {
    loop_config config{};
    config.fd = static_cast<uint32_t>(file.get());
    config.block_size = 4096;
    config.info.lo_flags = LO_FLAGS_AUTOCLEAR | LO_FLAGS_DIRECT_IO;
    const size_t length = std::min(image.size(), sizeof(config.info.lo_file_name) - 1);
    std::copy_n(image.begin(), length, config.info.lo_file_name);
    return ::ioctl(device.get(), LOOP_CONFIGURE, &config) == 0;
}

bool backed_by(const Fd& device, const struct stat& file) {
    loop_info64 info{};
    return ::ioctl(device.get(), LOOP_GET_STATUS64, &info) == 0 && info.lo_inode == file.st_ino &&
           info.lo_device == file.st_dev;
}

// The device comes back open: one that nobody else uses any more frees itself at its last close.
Result<std::optional<LoopDevice>> device_of(const std::string& image) {
    struct stat file{};
    if (::stat(image.c_str(), &file) != 0) return last_os_failure("looking at " + image);
    std::error_code failed;
    for (const auto& entry : std::filesystem::directory_iterator("/sys/block", failed)) {
        const std::string name = entry.path().filename();
        if (!name.starts_with("loop") || !std::filesystem::exists(entry.path() / "loop", failed))
            continue;
        auto device = open_file("/dev/" + name, O_RDWR);
        if (device && backed_by(*device, file))
            return LoopDevice{.fd = std::move(*device), .path = "/dev/" + name};
    }
    return std::optional<LoopDevice>();
}

}  // namespace

Result<LoopDevice> attach_loop(const std::string& image) {
    if (auto old = TRY(device_of(image))) return std::move(*old);
    const Fd file = TRY(open_file(image, O_RDWR));
    for (int attempt = 0; attempt < kAttempts; ++attempt) {
        std::string path;
        Fd device = TRY(free_device(path));
        if (configure(device, file, image))
            return LoopDevice{.fd = std::move(device), .path = path};
        if (errno != EBUSY) return last_os_failure("setting up a loop device for " + image);
    }
    return make_error(ErrorKind::Unavailable, "no free loop device: try again");
}

Result<void> update_loop_size(const std::string& image) {
    const auto device = TRY(device_of(image));
    if (!device) return make_error(ErrorKind::NotFound, "no loop device is backed by " + image);
    if (::ioctl(device->fd.get(), LOOP_SET_CAPACITY, 0) != 0)
        return last_os_failure("enlarging " + device->path);
    return {};
}

Result<bool> loop_attached(const std::string& image) {
    return TRY(device_of(image)).has_value();
}

}  // namespace cloister::os
