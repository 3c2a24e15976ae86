// cloister pool grow SIZE: asks the warden itself, as root; the service goes on meanwhile.
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>

#include "base/limits.h"
#include "os/socket.h"
#include "programs/cli/arguments.h"
#include "programs/cli/command.h"
#include "programs/cli/settings.h"
#include "programs/cli/terminal.h"
#include "wire/layout.h"
#include "wire/warden.h"

namespace cloister::cli {
namespace {

Result<os::Fd> connect_to_warden(const std::string& data) {
    if (::geteuid() != 0) {
        return make_error(ErrorKind::PermissionDenied,
                          "the pool is the host's: `sudo cloister pool grow`");
    }
    auto connection = os::connect_unix(layout::warden_socket(data), os::SocketKind::SeqPacket);
    if (connection) return connection;
    return make_error(ErrorKind::FailedPrecondition,
                      fmt::format("no service runs on {}: start it with `cloister serve`", data));
}

// Until the end of that request; the warden tells of sandboxes that end on every connection.
Result<void> wait_for_end(const os::Fd& connection) {
    for (;;) {
        const os::Received message =
            TRY(os::receive_with_fds(connection, limits::kWardenMessageMax));
        if (message.bytes.empty()) {
            return make_error(ErrorKind::Unavailable,
                              "the service broke off: look at `cloister df`, and try again");
        }
        const warden::Reply reply = TRY(warden::decode_reply(message.bytes));
        if (const auto* done = std::get_if<warden::DoneReply>(&reply))
            return warden::result_of(*done);
    }
}

Result<void> grow(const Place& place, const std::string& size) {
    const uint64_t bytes = TRY(parse_pool_bytes(size));
    const std::string data = TRY(find_data(place));
    const os::Fd connection = TRY(connect_to_warden(data));
    const warden::Request request = warden::GrowPoolRequest{.tag = 1, .bytes = bytes};
    TRY_OK(os::send_with_fds(connection, warden::encode(request), {}));
    const Progress progress("growing the pool to " + size);
    return wait_for_end(connection);
}

}  // namespace

int pool_command(const Words& words) {
    Place place;
    std::string size;
    CLI::App app("The pool that holds templates and the files of sandboxes", "cloister pool");
    app.require_subcommand(1);
    CLI::App* grow_verb = app.add_subcommand(
        "grow", "makes it larger; its blocks are taken from the host's disk at once");
    add_place_options(*grow_verb, place);
    grow_verb->add_option("SIZE", size, "the new size: 20G")->required();
    if (const auto code = parse_words(app, words)) return *code;
    const Result<void> grown = grow(place, size);
    if (!grown) return say_error(grown.error());
    say("the pool has " + size + " now");
    return 0;
}

}  // namespace cloister::cli
