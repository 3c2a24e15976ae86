#include "programs/agent/file_helper.h"

#include <unistd.h>

#include <csignal>
#include <cstring>

#include "base/limits.h"
#include "os/socket.h"
#include "programs/agent/answers.h"
#include "programs/agent/file_ops.h"
#include "wire/frame.h"

namespace cloister::agent {
namespace {

// The work as plain bytes; both ends are the same program.
enum class Kind : uint8_t { File, Walk };

struct Header {
    Kind kind = Kind::File;
    timespec since{};
    int64_t time_max_ms = 0;
    DiskProbe probe = DiskProbe::No;
};

std::string encode(const FileWork& work) {
    Header header;
    std::string text;
    if (const auto* walk = std::get_if<WalkRequest>(&work)) {
        header.kind = Kind::Walk;
        header.since = walk->since;
        header.time_max_ms = walk->time_max_ms;
        header.probe = walk->probe;
        text = walk->directory;
    } else {
        text = std::get<FileWorkText>(work).text;
    }
    std::string bytes(sizeof(header), '\0');
    std::memcpy(bytes.data(), &header, sizeof(header));
    return bytes + text;
}

void do_work(std::string_view message, const os::Fd& channel, const std::string& home) {
    Header header;
    std::memcpy(&header, message.data(), sizeof(header));
    const std::string text(message.substr(sizeof(header)));
    if (header.kind == Kind::File) {
        if (const auto request = decode_file_request(text, home)) serve_file(*request, channel);
        return;
    }
    // Nobody reads if the walk took too long: then the answer is lost, as it should be.
    (void)os::write_all(channel, changed_files({.directory = text,
                                                .since = header.since,
                                                .time_max_ms = header.time_max_ms,
                                                .probe = header.probe}));
}

void answer_no_process(const os::Fd& channel) {
    std::string frame;
    append_frame(frame, FrameKind::Json,
                 error_answer(make_error(ErrorKind::ResourceExhausted,
                                         "the sandbox has no process left: end some of its "
                                         "programs, then try again")));
    (void)os::write_all(channel, frame);  // the client may be gone
}

// A child costs more than a look at a few files. Should the disk not answer meanwhile, the agent
// ends this helper when the walk is due, and starts another.
bool walked_at_once(std::string_view message, const os::Fd& channel) {
    Header header;
    std::memcpy(&header, message.data(), sizeof(header));
    if (header.kind != Kind::Walk) return false;
    const auto answer =
        changed_files_of_few({.directory = std::string(message.substr(sizeof(header))),
                              .since = header.since,
                              .time_max_ms = header.time_max_ms,
                              .probe = header.probe});
    if (answer) (void)os::write_all(channel, *answer);  // as in do_work()
    return answer.has_value();
}

// The helper's whole life: one message, one child.
void serve(const os::Fd& socket, const std::string& home) {
    for (;;) {
        auto message = os::receive_with_fds(socket, sizeof(Header) + kFileRequestMax);
        if (!message || message->bytes.size() < sizeof(Header) || message->fds.size() != 1) return;
        if (!os::set_blocking(message->fds[0], os::Blocking::Yes)) continue;
        if (walked_at_once(message->bytes, message->fds[0])) continue;
        const pid_t pid = ::fork();
        if (pid == 0) {
            do_work(message->bytes, message->fds[0], home);
            ::_exit(0);
        }
        if (pid < 0) answer_no_process(message->fds[0]);
    }
}

}  // namespace

Result<void> FileHelper::prepare() {
    if (pid_ >= 0) return {};
    os::SocketPair pair = TRY(os::make_socket_pair(os::SocketKind::SeqPacket));
    TRY_OK(os::set_blocking(pair.ours, os::Blocking::No));
    pid_ = TRY(processes_.start_worker(identity_, pair.theirs,
                                       [this](os::Fd socket) { serve(socket, home_); }));
    socket_ = std::move(pair.ours);
    return {};
}

Result<void> FileHelper::start(const FileWork& work, const os::Fd& channel) {
    const std::string message = encode(work);
    TRY_OK(prepare());
    if (os::send_with_fds(socket_, message, {channel.get()})) return {};
    // It was killed, or stopped until its socket was full: a new one takes its place.
    stop();
    TRY_OK(prepare());
    return os::send_with_fds(socket_, message, {channel.get()});
}

void FileHelper::on_child_end(pid_t pid) {
    if (pid != pid_) return;
    pid_ = -1;
    socket_.reset();
}

void FileHelper::stop() {
    if (pid_ >= 0) ::kill(pid_, SIGKILL);
    pid_ = -1;
    socket_.reset();
}

}  // namespace cloister::agent
