#include "programs/agent/birth_record.h"

#include <fcntl.h>

#include <cstring>

#include "base/limits.h"

namespace cloister::agent {
namespace {

Result<os::Fd> adopt(int number) {
    if (::fcntl(number, F_SETFD, FD_CLOEXEC) != 0) {
        return last_os_failure("taking over descriptor " + std::to_string(number));
    }
    return os::Fd(number);
}

Result<birth::Record> read_record(const os::Fd& file) {
    const std::string bytes = TRY(os::read_all(file, limits::kKiB));
    birth::Record record;
    if (bytes.size() != sizeof(record)) {
        return make_error(ErrorKind::Internal, "the birth record has a wrong size");
    }
    std::memcpy(&record, bytes.data(), sizeof(record));
    if (record.version != birth::kVersion || record.procs > birth::kProcsMax) {
        return make_error(ErrorKind::Internal, "the birth record is of another version");
    }
    return record;
}

Result<void> adopt_if(const birth::Record& record, birth::Have bit, int number, os::Fd& into) {
    if ((record.have & bit) != 0) into = TRY(adopt(number));
    return {};
}

// Its children are born into the time namespace, it is not itself in it.
Result<void> open_namespaces(Birth& birth) {
    constexpr std::array<const char*, forking::kNamespaces> kNames = {
        "user", "mnt", "net", "ipc", "uts", "cgroup", "time_for_children", "pid"};
    for (size_t i = 0; i < kNames.size(); ++i) {
        birth.namespaces[i] =
            TRY(os::open_file(std::string("/proc/self/ns/") + kNames[i], O_RDONLY));
    }
    return {};
}

}  // namespace

Result<Birth> take_birth() {
    Birth birth;
    birth.listener = TRY(adopt(birth::kListener));
    const os::Fd record = TRY(adopt(birth::kRecord));
    birth.record = TRY(read_record(record));
    const os::Fd filter = TRY(adopt(birth::kFinalFilter));
    birth.final_filter = TRY(os::read_all(filter, limits::kMiB));
    if (birth.final_filter.empty()) {  // user code must never run without it
        return make_error(ErrorKind::Internal, "the filter of system calls is empty");
    }
    birth.ready = TRY(adopt(birth::kReady));
    birth.spool = TRY(adopt(birth::kSpool));
    birth.zygote = TRY(adopt(birth::kZygote));
    TRY_OK(open_namespaces(birth));
    for (size_t i = 0; i < birth.proc_view.size(); ++i) {
        birth.proc_view[i] = TRY(adopt(birth::kProcView + static_cast<int>(i)));
    }
    TRY_OK(adopt_if(birth.record, birth::kHaveMemoryPeak, birth::kMemoryPeak, birth.memory_peak));
    TRY_OK(adopt_if(birth.record, birth::kHaveMemoryEvents, birth::kMemoryEvents,
                    birth.memory_events));
    TRY_OK(adopt_if(birth.record, birth::kHaveCpuUsage, birth::kCpuUsage, birth.cpu_usage));
    TRY_OK(adopt_if(birth.record, birth::kHavePidsEvents, birth::kPidsEvents, birth.pids_events));
    TRY_OK(adopt_if(birth.record, birth::kHaveMemoryNow, birth::kMemoryNow, birth.memory_now));
    TRY_OK(adopt_if(birth.record, birth::kHaveMemoryStat, birth::kMemoryStat, birth.memory_stat));
    TRY_OK(adopt_if(birth.record, birth::kHaveOomEvent, birth::kOomEvent, birth.oom_event));
    for (uint32_t i = 0; i < birth.record.procs; ++i) {
        birth.procs.push_back(TRY(adopt(birth::kProcsFirst + static_cast<int>(i))));
    }
    return birth;
}

}  // namespace cloister::agent
