#include "jail/zygote_init.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>

#include "jail/before_exec.h"
#include "jail/identity.h"
#include "jail/mount_tree.h"
#include "os/cgroup.h"
#include "os/process.h"
#include "wire/fork_order.h"
#include "wire/user_environment.h"

namespace cloister::jail {
namespace {

constexpr int kFirstFreeFd = 16;

// What a plain interpreter is started as, to the letter: its children are told by it.
constexpr const char* kInterpreter = "/usr/bin/python3";
constexpr const char* kDriver = "/opt/cloister/kernels/python/cloister_kernel";

void enter_groups(Steps& steps, const ZygoteBirth& birth) {
    steps.at(Stage::Groups);
    for (size_t i = kZygoteOrderFixed; i < birth.fds.size(); ++i)
        steps.must(::write(birth.fds[i].get(), "0", 1));
}

int filter_file(const Steps& steps, const std::string& filter) {
    const auto file = static_cast<int>(steps.must(::memfd_create("filter", MFD_CLOEXEC)));
    steps.must(::write(file, filter.data(), filter.size()));
    steps.must(::lseek(file, 0, SEEK_SET));
    return file;
}

void place_descriptors(Steps& steps, const ZygoteBirth& birth) {
    steps.at(Stage::Descriptors);
    const int null = static_cast<int>(steps.must(::open("/dev/null", O_RDWR | O_CLOEXEC)));
    const std::array wanted = {null, null, STDERR_FILENO, birth.requests.get(),
                               filter_file(steps, birth.forked_filter)};
    static_assert(forking::kRequests == 3 && forking::kFilter == 4);
    std::array<int, wanted.size()> lifted{};
    for (size_t i = 0; i < wanted.size(); ++i)
        lifted[i] = static_cast<int>(steps.must(::fcntl(wanted[i], F_DUPFD, kFirstFreeFd)));
    for (size_t i = 0; i < wanted.size(); ++i) steps.must(::dup2(lifted[i], static_cast<int>(i)));
    steps.must(::syscall(SYS_close_range, wanted.size(), ~0u, 0));
}

[[noreturn]] void execute(Steps& steps) {
    std::vector<std::string> texts;
    for (const auto& [name, value] : kUserEnvironment)
        texts.push_back(std::string(name) + "=" + std::string(value));
    texts.push_back("PWD=" + std::string(kUserHome));
    std::vector<char*> environment;
    for (std::string& text : texts) environment.push_back(text.data());
    environment.push_back(nullptr);
    std::string program = kInterpreter, driver = kDriver;
    const std::array<char*, 3> argv{program.data(), driver.data(), nullptr};
    steps.must(::chdir(std::string(kUserHome).c_str()));
    steps.at(Stage::Execute);
    steps.must(::execve(program.c_str(), argv.data(), environment.data()));
    steps.fail(ENOEXEC);
}

}  // namespace

bool well_formed(const ZygoteBirth& birth) {
    return birth.order.kind == OrderKind::Zygote && birth.order.procs <= os::kHierarchiesMax &&
           birth.fds.size() == kZygoteOrderFixed + birth.order.procs;
}

void zygote_init(const ZygoteBirth& birth) {
    Steps steps(birth.requests.get());
    enter_groups(steps, birth);
    steps.at(Stage::Mounts);
    steps.must(::unshare(CLONE_NEWNS));
    build_zygote_tree(steps, birth.fds[kZygoteOrderRoot].get(),
                      birth.fds[kZygoteOrderRuntime].get());
    place_descriptors(steps, birth);
    Steps rest(forking::kRequests);
    become_zygote(rest);
    load_birth_filter(rest, birth.filter.data(), birth.filter.size());
    os::reset_signals();
    execute(rest);
}

}  // namespace cloister::jail
