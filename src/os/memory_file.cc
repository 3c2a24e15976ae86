#include "os/memory_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

namespace cloister::os {

Result<Fd> make_sealed_file(const std::string& name, std::string_view bytes) {
    Fd file(::memfd_create(name.c_str(), MFD_CLOEXEC | MFD_ALLOW_SEALING));
    if (!file.open()) return last_os_failure("making a memory file");
    TRY_OK(write_all(file, bytes));
    constexpr int kSeals = F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE;
    if (::fcntl(file.get(), F_ADD_SEALS, kSeals) != 0)
        return last_os_failure("sealing a memory file");
    if (::lseek(file.get(), 0, SEEK_SET) != 0) return last_os_failure("rewinding a memory file");
    return file;
}

Result<Fd> reopen_for_reading(const Fd& file) {
    return open_file("/proc/self/fd/" + std::to_string(file.get()), O_RDONLY);
}

}  // namespace cloister::os
