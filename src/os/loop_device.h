// Loop devices: a file as a block device, with direct I/O, that frees itself with its last user.
#pragma once

#include <string>

#include "os/fd.h"

namespace cloister::os {

struct LoopDevice {
    Fd fd;             // holds the device until it is mounted
    std::string path;  // "/dev/loop3"
};

// The device of `image`. One that is there already (of a program that was killed) is used again: a
// file system must never be mounted through two devices.
Result<LoopDevice> attach_loop(const std::string& image);
// Makes the device as large as its file has become.
Result<void> update_loop_size(const std::string& image);
// Whether some loop device is still backed by `image`.
Result<bool> loop_attached(const std::string& image);

}  // namespace cloister::os
