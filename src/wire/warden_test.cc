#include "wire/warden.h"

#include <gtest/gtest.h>

#include "base/limits.h"

namespace cloister::warden {
namespace {

CreateRequest good_request() {
    return CreateRequest{.tag = 7,
                         .plan = {.sandbox = Id::from(new_id()).value(),
                                  .project = Id::from(new_id()).value(),
                                  .template_revision = Id::from(new_id()).value(),
                                  .cpu = 2,
                                  .memory_max = limits::kSandboxMemoryDefault,
                                  .disk_max = limits::kSandboxDiskDefault,
                                  .pids_max = limits::kSandboxPidsDefault}};
}

TEST(Warden, RequestsComeOutAsTheyWentIn) {
    const CreateRequest request = good_request();
    const Request back = decode_request(encode(Request(request))).value();
    const auto& create = std::get<CreateRequest>(back);
    EXPECT_EQ(create.tag, 7U);
    EXPECT_EQ(create.plan.sandbox, request.plan.sandbox);
    EXPECT_EQ(create.plan.memory_max, limits::kSandboxMemoryDefault);
}

TEST(Warden, RefusesIdsAndSizesOutOfTheirRange) {
    CreateRequest bad_id = good_request();
    bad_id.plan.sandbox.text[3] = '/';
    EXPECT_FALSE(decode_request(encode(Request(bad_id))));
    CreateRequest no_memory = good_request();
    no_memory.plan.memory_max = 1;
    EXPECT_FALSE(decode_request(encode(Request(no_memory))));
    CreateRequest many_pids = good_request();
    many_pids.plan.pids_max = limits::kSandboxPidsDefault + 1;
    EXPECT_FALSE(decode_request(encode(Request(many_pids))));
    EXPECT_FALSE(decode_request(encode(Request(DestroyRequest{.tag = 1}))));
}

TEST(Warden, RefusesToFreezeWhatIsNeitherYesNorNo) {
    const Id id = Id::from(new_id()).value();
    for (const uint32_t frozen : {0u, 1u, 2u}) {
        const Request request = FreezeRequest{.tag = 1, .sandbox = id, .frozen = frozen};
        EXPECT_EQ(decode_request(encode(request)).has_value(), frozen <= 1);
    }
    EXPECT_FALSE(decode_request(encode(Request(ReviveRequest{.tag = 1}))));
}

TEST(Warden, AWayOutIsOfAKnownKind) {
    NetworkRequest request{
        .tag = 9, .sandbox = Id::from(new_id()).value(), .kind = PathKind::TcpUdp};
    const Request back = decode_request(encode(Request(request))).value();
    EXPECT_EQ(std::get<NetworkRequest>(back).kind, PathKind::TcpUdp);
    request.kind = static_cast<PathKind>(3);
    EXPECT_FALSE(decode_request(encode(Request(request))));
    EXPECT_FALSE(decode_request(encode(Request(NetworkRequest{.tag = 1}))));
}

TEST(Warden, RefusesCutAndForeignMessages) {
    const std::string bytes = encode(Request(good_request()));
    for (size_t length = 0; length < bytes.size(); ++length) {
        EXPECT_FALSE(decode_request(bytes.substr(0, length))) << length;
    }
    EXPECT_FALSE(decode_request(bytes + "x"));
    std::string stuffed = bytes;
    stuffed[12] = 1;  // the header's reserved word
    EXPECT_FALSE(decode_request(stuffed));
    std::string other_version = bytes;
    other_version[0] = 99;
    EXPECT_EQ(decode_request(other_version).error().kind, ErrorKind::FailedPrecondition);
}

TEST(Warden, ErrorsSurviveTheWay) {
    const Result<void> failure =
        Error{.kind = ErrorKind::ResourceExhausted, .message = "no slot is free", .os_error = 28};
    const Reply back = decode_reply(encode(Reply(done(3, failure)))).value();
    const Result<void> result = result_of(std::get<DoneReply>(back));
    ASSERT_FALSE(result);
    EXPECT_EQ(result.error().kind, ErrorKind::ResourceExhausted);
    EXPECT_EQ(result.error().message, "no slot is free");
    EXPECT_TRUE(result_of(done(3, Result<void>())));
}

}  // namespace
}  // namespace cloister::warden
