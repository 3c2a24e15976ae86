#include "programs/shell/shell.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <csignal>
#include <utility>

#include "base/limits.h"
#include "programs/shell/bash.h"

namespace cloister::shell {
namespace {

// kernels/bash/functions.bash has the same list.
enum Number { kBell = 4, kAnswers = 5, kRequest = 6, kState = 7, kFunctions = 8, kLoop = 9 };
constexpr size_t kLineMax = 256;

Result<os::Fd> make_memory_file(const char* name) {
    os::Fd file(::memfd_create(name, MFD_CLOEXEC));
    if (!file.open()) return last_os_failure("making a memory file");
    return file;
}

// `fd` under the number that the shell knows.
Result<os::Fd> fixed(const os::Fd& fd, Number number) {
    os::Fd placed(::dup3(fd.get(), number, O_CLOEXEC));
    if (!placed.open()) return last_os_failure("placing a descriptor");
    return placed;
}

void add_field(std::string& fields, std::string_view field) {
    fields.append(field).push_back('\0');
}

std::string fields_of(const Order& order) {
    std::string fields;
    add_field(fields, std::to_string(order.number));
    add_field(fields, order.cwd);
    add_field(fields, order.code);
    add_field(fields, order.args ? "args" : "");
    const std::vector<std::string> args = order.args.value_or(std::vector<std::string>{});
    add_field(fields, std::to_string(args.size()));
    for (const std::string& word : args) add_field(fields, word);
    for (const auto& [name, value] : order.env) {
        add_field(fields, name);
        add_field(fields, value);
    }
    return fields;
}

}  // namespace

Result<Shell> Shell::start(const std::string& bash, const std::string& scripts) {
    Shell shell;
    TRY_OK(shell.open_descriptors(scripts));
    TRY_OK(shell.launch(bash));
    TRY_OK(shell.await_version());
    return shell;
}

Result<void> Shell::open_descriptors(const std::string& scripts) {
    // First placeholders, so that none of the real ones is born under a number of another.
    os::Fd born = TRY(os::open_file("/dev/null", O_RDONLY));
    const os::Fd null(::fcntl(born.get(), F_DUPFD_CLOEXEC, kLoop + 1));
    if (!null.open()) return last_os_failure("duplicating a descriptor");
    born.reset();
    for (int number = kBell; number <= kLoop; ++number) {
        fixed_.push_back(TRY(fixed(null, static_cast<Number>(number))));
    }
    os::Pipe bell = TRY(os::make_pipe()), answers = TRY(os::make_pipe());
    const os::Fd request = TRY(make_memory_file("request"));
    const os::Fd state = TRY(make_memory_file("state"));
    const os::Fd functions = TRY(os::open_file(scripts + "/functions.bash", O_RDONLY));
    const os::Fd loop = TRY(os::open_file(scripts + "/loop.bash", O_RDONLY));
    // In the order of their numbers.
    int number = kBell;
    for (const os::Fd* fd : {&std::as_const(bell.read), &std::as_const(answers.write), &request,
                             &state, &functions, &loop}) {
        // The placeholder's owner has it.
        (void)TRY(fixed(*fd, static_cast<Number>(number++))).release();
    }
    bell_ = std::move(bell.write);
    answers_ = std::move(answers.read);
    return os::set_blocking(answers_, os::Blocking::No);
}

Result<void> Shell::launch(const std::string& bash) {
    const os::Fd null = TRY(os::open_file("/dev/null", O_RDWR));
    pid_ = ::fork();
    if (pid_ < 0) return last_os_failure("forking the shell");
    if (pid_ > 0) return {};
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    ::dup2(kLoop, 0);
    ::dup2(null.get(), 1);
    ::dup2(null.get(), 2);
    execute_bash(bash, {"bash"}, nullptr);
}

Result<void> Shell::await_version() {
    pollfd readable{.fd = answers_.get(), .events = POLLIN, .revents = 0};
    for (;;) {
        const int ready = ::poll(&readable, 1, static_cast<int>(limits::kContextStartTimeoutMs));
        if (ready < 0 && errno == EINTR) continue;
        if (ready == 0) return make_error(ErrorKind::DeadlineExceeded, "bash does not start");
        const auto line = take_line();
        if (!line) continue;
        version_ = line->substr(std::min(line->size(), line->find(' ') + 1));
        return {};
    }
}

Result<void> Shell::begin(const Order& order) {
    const std::string fields = fields_of(order);
    if (::ftruncate(kRequest, 0) != 0 || ::ftruncate(kState, 0) != 0) {
        return last_os_failure("emptying a memory file");
    }
    if (::lseek(kRequest, 0, SEEK_SET) != 0) return last_os_failure("rewinding a memory file");
    TRY_OK(os::write_all(fixed_[kRequest - kBell], fields));
    return os::write_all(bell_, "\n");
}

std::optional<int> Shell::take_answer(int64_t number) {
    // Code that writes to our descriptors answers in vain: it would have to know the number.
    while (const auto line = take_line()) {
        const std::string expected = fmt::format("{} ", number);
        int status = 0;
        if (!line->starts_with(expected)) continue;
        const char* from = line->data() + expected.size();
        if (std::from_chars(from, line->data() + line->size(), status).ec == std::errc()) {
            return status & 0xFF;
        }
    }
    return std::nullopt;
}

std::optional<std::string> Shell::take_line() {
    std::array<char, kLineMax> chunk;
    for (;;) {
        const size_t end = pending_.find('\n');
        if (end != std::string::npos) {
            std::string line = pending_.substr(0, end);
            pending_.erase(0, end + 1);
            return line;
        }
        if (pending_.size() > kLineMax) pending_.clear();  // no answer is so long
        const ssize_t got = ::read(answers_.get(), chunk.data(), chunk.size());
        if (got <= 0) return std::nullopt;
        pending_.append(chunk.data(), static_cast<size_t>(got));
    }
}

bool Shell::is_changing() const {
    struct stat now{};
    return ::fstat(kState, &now) == 0 && now.st_size > 0;
}

std::string Shell::cwd() const {
    const std::string link = fmt::format("/proc/{}/cwd", pid_);
    std::string path(limits::kPathMax, '\0');
    const ssize_t size = ::readlink(link.c_str(), path.data(), path.size());
    path.resize(static_cast<size_t>(std::max<ssize_t>(size, 0)));
    return ::access(path.c_str(), F_OK) == 0 ? path : "";
}

}  // namespace cloister::shell
