#include "programs/egressd/opening.h"

#include <array>

#include "base/time.h"
#include "egress/client_hello.h"
#include "os/net.h"
#include "programs/egressd/limits.h"

namespace cloister::egressd {
namespace {

constexpr char kTlsRecord = 22;

enum class Known { NotYet, Yes };

// Decides on what has come so far; each byte is looked at once.
class Reader {
  public:
    Known take(std::string_view bytes) {
        opening.bytes += bytes;
        if (opening.bytes.front() == kTlsRecord) return take_tls(bytes);
        switch (egress::looks_like_http(opening.bytes)) {
            case egress::LooksLike::No:
                return Known::Yes;
            case egress::LooksLike::Maybe:
                return Known::NotYet;
            case egress::LooksLike::Yes:
                break;
        }
        return take_http();
    }

    Opening opening;

  private:
    Known take_tls(std::string_view bytes) {
        opening.kind = Opening::Kind::Tls;
        const auto done = hello_.feed(bytes);
        if (done && !*done) return Known::NotYet;
        if (done) opening.name = hello_.server_name().value_or("");
        return Known::Yes;
    }

    Known take_http() {
        opening.kind = Opening::Kind::Http;
        constexpr std::string_view kEnd = "\r\n\r\n";
        const size_t from = looked_ < kEnd.size() ? 0 : looked_ - kEnd.size();
        const size_t end = opening.bytes.find(kEnd, from);
        looked_ = opening.bytes.size();
        const bool too_long = opening.bytes.size() > egress::kHttpHeadMax;
        if (end == std::string::npos && !too_long) return Known::NotYet;
        const auto head = egress::parse_http_head(opening.bytes.substr(0, end + kEnd.size()));
        if (!head || too_long) {
            opening.kind = Opening::Kind::Unclear;
            opening.unclear = head ? "its head is too long" : head.error().message;
        } else if (const auto* name = std::get_if<std::string>(&head->host)) {
            opening.name = *name;
        }
        return Known::Yes;
    }

    egress::ClientHello hello_;
    size_t looked_ = 0;
};

}  // namespace

Task<Result<Opening>> read_opening(std::shared_ptr<Descriptor> client) {
    Reader reader;
    const int64_t begun = steady_ms();
    for (;;) {
        std::array<char, 16 * 1024> buffer{};
        const auto got = os::try_read(client->fd(), buffer);
        if (!got) co_return got.error();
        if (*got && **got == 0) {
            if (reader.opening.bytes.empty())
                co_return make_error(ErrorKind::Cancelled, "the client went away");
            co_return std::move(reader.opening);
        }
        if (*got && reader.take({buffer.data(), **got}) == Known::Yes)
            co_return std::move(reader.opening);
        if (*got) continue;
        const bool silent = reader.opening.bytes.empty();
        const auto most = silent ? kSilence : kOpeningTime;
        const int64_t left = most.count() - (steady_ms() - begun);
        const auto wait =
            co_await client->readable_within(std::chrono::milliseconds(std::max<int64_t>(left, 1)));
        if (wait == Descriptor::Wait::Closed)
            co_return make_error(ErrorKind::Cancelled, "the client went away");
        if (wait == Descriptor::Wait::Ready) continue;
        if (!silent)
            co_return make_error(ErrorKind::DeadlineExceeded, "what it began was never whole");
        co_return std::move(reader.opening);
    }
}

}  // namespace cloister::egressd
