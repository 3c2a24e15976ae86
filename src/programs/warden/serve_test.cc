// The whole warden, driven over its socket, with real nests and the real agent: needs root, and the
// programs and the runtime of the same build beside this test.
#include "programs/warden/serve.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <thread>

#include "base/ids.h"
#include "base/log.h"
#include "base/time.h"
#include "os/btrfs.h"
#include "os/loop_device.h"
#include "os/socket.h"
#include "programs/warden/prepare.h"
#include "wire/frame.h"
#include "wire/layout.h"

namespace cloister::warden {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kRevision = "base00000000000e0000";
constexpr uid_t kServer = 64'997;

const std::string kName = "test-" + std::to_string(::getpid());  // the same in every forked process

bool loop_there(const std::string& image) {
    const auto attached = os::loop_attached(image);
    return attached && *attached;
}

// Groups of this test's warden, in the hierarchy that counts processes.
std::string group_directory() {
    const auto layout = os::detect_cgroups();
    for (const os::Hierarchy& hierarchy : layout->hierarchies) {
        if (hierarchy.has(os::Controller::Pids))
            return hierarchy.mount_point + "/cloister-" + kName;
    }
    return {};
}

// Those that are there: groups may go while they are listed.
std::vector<fs::path> all_groups() {
    std::vector<fs::path> groups;
    std::error_code failed;
    const fs::recursive_directory_iterator end;
    for (fs::recursive_directory_iterator entry(group_directory(), failed); !failed && entry != end;
         entry.increment(failed)) {
        groups.push_back(entry->path());
    }
    return groups;
}

std::vector<pid_t> processes_in(const std::string& leaf) {
    std::vector<pid_t> processes;
    for (const fs::path& group : all_groups()) {
        if (group.filename() != leaf) continue;
        std::ifstream file(group / "cgroup.procs");
        for (pid_t process = 0; file >> process;) processes.push_back(process);
    }
    return processes;
}

std::vector<std::string> names_in(const std::string& directory) {
    std::vector<std::string> names;
    std::error_code failed;
    for (const auto& entry : fs::directory_iterator(directory, failed))
        names.push_back(entry.path().filename());
    return names;
}

class WardenTest : public testing::Test {
  protected:
    static void SetUpTestSuite() {
        fs::create_directories(root() + "/image");
        for (const char* name : {"dev", "proc", "sys", "run", "tmp", "opt", "etc", "home/user"}) {
            fs::create_directories(root() + "/image/" + name);
        }
        const std::string image = root() + "/base-00000000000e.tar.zst";
        ASSERT_TRUE(os::run_program(
            {"tar", "--create", "--zstd", "--file", image, "--directory", root() + "/image", "."}));
        const pid_t child = ::fork();
        if (child == 0) {
            const auto done = prepare({.data = data(),
                                       .images = {image},
                                       .runtime = runtime(),
                                       .pool_bytes = 4ull << 30});
            if (!done) log_error(done.error().message);
            ::_exit(done ? 0 : 1);
        }
        int status = 0;
        ::waitpid(child, &status, 0);
        ASSERT_EQ(status, 0) << "build the target `runtime` first";
    }
    static void TearDownTestSuite() { fs::remove_all(root()); }

    void SetUp() override { start(); }
    void TearDown() override {
        connection_.reset();
        if (warden_ > 0) EXPECT_EQ(stop(SIGTERM), 0) << "it ends well";
        for (int i = 0; i < 100 && loop_there(layout::pool_image(data())); ++i)
            std::this_thread::sleep_for(std::chrono::milliseconds(20));
        EXPECT_FALSE(loop_there(layout::pool_image(data())));
        EXPECT_FALSE(fs::exists(group_directory()));
        EXPECT_TRUE(fs::is_empty(layout::agents_directory(data())));
        EXPECT_TRUE(fs::is_empty(layout::nests_directory(data())));
        EXPECT_FALSE(fs::exists(layout::warden_socket(data())));
    }

    void start(const std::string& failpoint = "") {
        warden_ = ::fork();
        ASSERT_GE(warden_, 0);
        if (warden_ == 0) {
            ::setpgid(0, 0);  // a failpoint ends the process group
            ::setenv("CLOISTER_FAILPOINT", failpoint.c_str(), 1);
            log_open("cloister-warden", LogLevel::Error);
            const auto served = serve(
                {.data = data(), .runtime = runtime_, .instance = kName, .server_uid = kServer});
            if (!served) log_error(served.error().message);
            ::_exit(served ? 0 : 1);
        }
        connect();
    }
    void connect() {
        for (int i = 0; i < 1000 && !connection_.open(); ++i) {
            auto connected =
                os::connect_unix(layout::warden_socket(data()), os::SocketKind::SeqPacket);
            // A dying helper of the former warden may hold its listener for a moment.
            if (connected && os::peer_of(*connected)->pid == warden_)
                connection_ = std::move(*connected);
            else
                std::this_thread::sleep_for(std::chrono::milliseconds(10));
        }
        ASSERT_TRUE(connection_.open());
    }
    int stop(int signal) {
        ::kill(std::exchange(warden_, -1), signal);
        int status = 0;
        ::waitpid(-1, &status, 0);
        connection_.reset();
        return status;
    }

    // It has died by itself, of a failpoint.
    int await_death() {
        int status = 0;
        ::waitpid(std::exchange(warden_, -1), &status, 0);
        connection_.reset();
        return status;
    }

    // --- Talking to it ---
    void send(const Request& request) {
        ASSERT_TRUE(os::send_with_fds(connection_, encode(request), {}));
    }
    Result<Reply> receive() {
        pollfd polled{.fd = connection_.get(), .events = POLLIN, .revents = 0};
        if (::poll(&polled, 1, 60'000) != 1)
            return make_error(ErrorKind::DeadlineExceeded, "silence");
        const auto message = TRY(os::receive_with_fds(connection_, limits::kWardenMessageMax));
        if (message.bytes.empty()) return make_error(ErrorKind::Unavailable, "closed");
        return decode_reply(message.bytes);
    }
    template <class T>
    Result<T> receive_as() {
        const Reply reply = TRY(receive());
        const T* wanted = std::get_if<T>(&reply);
        if (wanted == nullptr) return make_error(ErrorKind::Internal, "another kind of answer");
        return *wanted;
    }
    Result<void> done() { return result_of(TRY(receive_as<DoneReply>())); }

    JailPlan plan() const {
        return {.sandbox = *Id::from(new_id()),
                .project = project_,
                .template_revision = *Id::from(kRevision),
                .cpu = 1,
                .memory_max = 256 * limits::kMiB,
                .disk_max = 64 * limits::kMiB,
                .pids_max = 32};
    }
    Result<void> create(const JailPlan& wanted) {
        send(CreateRequest{.tag = 1, .plan = wanted});
        return done();
    }
    Result<void> destroy(const Id& sandbox) {
        send(DestroyRequest{.tag = 2, .sandbox = sandbox});
        return done();
    }
    size_t count() {
        send(ListRequest{.tag = 3});
        for (size_t sandboxes = 0;; ++sandboxes) {
            const auto reply = receive_as<ListReply>();
            if (!reply || reply->last == 1) return sandboxes;
        }
    }
    Result<void> narrow(const Id& sandbox, uint64_t memory_max, uint32_t pids_max) {
        send(NarrowRequest{
            .tag = 4, .memory_max = memory_max, .sandbox = sandbox, .pids_max = pids_max});
        return done();
    }
    Result<void> freeze(const Id& sandbox, uint32_t frozen) {
        send(FreezeRequest{.tag = 6, .sandbox = sandbox, .frozen = frozen});
        return done();
    }
    Result<void> revive(const Id& sandbox) {
        send(ReviveRequest{.tag = 7, .sandbox = sandbox});
        return done();
    }
    // pids.max of a sandbox's user.
    static uint64_t pids_max_of(const Id& sandbox) {
        for (const fs::path& group : all_groups()) {
            if (group.parent_path().filename() != sandbox.view() || group.filename() != "user")
                continue;
            const auto text = os::read_file(group / "pids.max", 64);
            return text ? os::parse_bytes(*text) : 0;
        }
        return 0;
    }
    static bool is_put_back(const JailPlan& plan) {
        for (int i = 0; i < 500 && pids_max_of(plan.sandbox) != plan.pids_max; ++i)
            std::this_thread::sleep_for(std::chrono::milliseconds(10));
        return pids_max_of(plan.sandbox) == plan.pids_max;
    }
    // What the agent of a sandbox answers to `hello`.
    static std::string agent_hello(const Id& sandbox) {
        auto agent =
            os::connect_unix(layout::agent_socket(data(), sandbox.view()), os::SocketKind::Stream);
        if (!agent) return agent.error().message;
        std::string request;
        append_frame(request, FrameKind::Json, R"({"op":"hello"})");
        (void)os::write_all(*agent, request);
        FrameDecoder decoder;
        for (;;) {
            const auto message = os::receive_with_fds(*agent, 4096);
            if (!message || message->bytes.empty()) return "closed";
            decoder.feed(message->bytes);
            const auto answer = decoder.next();
            if (!answer) return answer.error().message;
            if (const auto& frame = *answer) return frame->payload;
        }
    }

    static std::vector<pid_t> agents_of(const Id& sandbox) {
        std::vector<pid_t> agents;
        for (const auto& nest : names_in(group_directory())) {
            std::ifstream file(group_directory() + "/" + nest + "/" + std::string(sandbox.view()) +
                               "/agent/cgroup.procs");
            for (pid_t process = 0; file >> process;) agents.push_back(process);
        }
        return agents;
    }
    // A directory of the pool, which is seen by the warden only.
    std::string in_pool(const std::string& name) const {
        return "/proc/" + std::to_string(warden_) + "/root" + layout::pool_directory(data()) + "/" +
               name;
    }
    // Sockets and subvolumes of sandboxes.
    std::vector<std::string> objects() const {
        std::vector<std::string> all = names_in(layout::agents_directory(data()));
        for (const char* parent : {jail::kSandboxes, jail::kSpools})
            std::ranges::copy(names_in(in_pool(parent)), std::back_inserter(all));
        return all;
    }

    static std::string root() { return "/tmp/cloister-warden-" + kName; }
    static std::string data() { return root() + "/data"; }
    static std::string runtime() {
        return fs::read_symlink("/proc/self/exe").parent_path().parent_path() / "runtime";
    }

    std::string runtime_ = runtime();
    pid_t warden_ = -1;
    os::Fd connection_;
    Id project_ = *Id::from(new_id());
};

TEST_F(WardenTest, SaysWhatItEnforces) {
    send(HelloRequest{.tag = 9});
    const auto hello = receive_as<HelloReply>();
    ASSERT_TRUE(hello);
    EXPECT_EQ(hello->tag, 9u);
    EXPECT_EQ(hello->templates[0].view(), kRevision);
    EXPECT_EQ(hello->enforced, 63u) << "memory, pids, cpu, disk, its throughput, cpu weight";
    EXPECT_NE(hello->oom_kill, static_cast<uint32_t>(OomKill::Nobody));
    EXPECT_GT(hello->host_memory, limits::kSandboxMemoryMin);
    EXPECT_GT(hello->pool_bytes, limits::kGiB);
    EXPECT_LT(hello->pool_free, hello->pool_bytes);
}

TEST_F(WardenTest, MakesASandboxWhoseAgentAnswersAndRemovesItWhole) {
    const JailPlan wanted = plan();
    const auto created = create(wanted);
    ASSERT_TRUE(created) << created.error().message;
    EXPECT_NE(agent_hello(wanted.sandbox).find(R"("ok":true)"), std::string::npos);
    EXPECT_EQ(processes_in("agent").size(), 1u);
    EXPECT_EQ(count(), 1u);
    struct stat socket{};
    ASSERT_EQ(::stat(layout::agent_socket(data(), wanted.sandbox.view()).c_str(), &socket), 0);
    EXPECT_EQ(socket.st_uid, kServer);
    EXPECT_EQ(socket.st_mode & 0777u, 0600u);

    send(UsageRequest{.tag = 5, .sandbox = wanted.sandbox});
    const auto usage = receive_as<UsageReply>();
    ASSERT_TRUE(usage);
    EXPECT_EQ(usage->pids, 0u) << "no user process yet";

    EXPECT_TRUE(destroy(wanted.sandbox));
    EXPECT_EQ(count(), 0u);
    EXPECT_TRUE(processes_in("agent").empty());
    EXPECT_EQ(agent_hello(wanted.sandbox).find("ok"), std::string::npos);
    EXPECT_TRUE(destroy(wanted.sandbox)) << "an unknown sandbox is as good as destroyed";
}

TEST_F(WardenTest, RefusesWhatItCannotMakeAndLeavesNothingOfIt) {
    const JailPlan wanted = plan();
    ASSERT_TRUE(create(wanted));
    EXPECT_EQ(create(wanted).error().kind, ErrorKind::AlreadyExists);
    JailPlan unknown = plan();
    unknown.template_revision = *Id::from("nosuchtemplate000000");
    EXPECT_EQ(create(unknown).error().kind, ErrorKind::NotFound);
    EXPECT_EQ(agent_hello(unknown.sandbox).find("ok"), std::string::npos);
    EXPECT_TRUE(destroy(unknown.sandbox));
    send(UsageRequest{.tag = 5, .sandbox = unknown.sandbox});
    EXPECT_EQ(done().error().kind, ErrorKind::NotFound);
    EXPECT_EQ(count(), 1u);
}

TEST_F(WardenTest, KeepsSandboxesWhenAConnectionEndsOrTalksNonsense) {
    const JailPlan wanted = plan();
    ASSERT_TRUE(create(wanted));
    ASSERT_TRUE(os::write_all(connection_, "nonsense"));
    EXPECT_FALSE(receive()) << "the connection is closed";
    connection_.reset();
    connect();
    EXPECT_EQ(count(), 1u);
    EXPECT_NE(agent_hello(wanted.sandbox).find("ok"), std::string::npos);
}

TEST_F(WardenTest, NarrowsLimitsAndPutsThemBackWhenItsClientIsGone) {
    const JailPlan wanted = plan();
    ASSERT_TRUE(create(wanted));
    const auto narrowed = narrow(wanted.sandbox, 64 * limits::kMiB, 8);
    ASSERT_TRUE(narrowed) << narrowed.error().message;
    EXPECT_EQ(pids_max_of(wanted.sandbox), 8u);
    EXPECT_EQ(narrow(wanted.sandbox, 512 * limits::kMiB, 8).error().kind,
              ErrorKind::InvalidArgument);
    EXPECT_EQ(narrow(wanted.sandbox, 0, 33).error().kind, ErrorKind::InvalidArgument);
    EXPECT_EQ(narrow(*Id::from(new_id()), 0, 8).error().kind, ErrorKind::NotFound);
    EXPECT_TRUE(narrow(wanted.sandbox, 0, 0));
    EXPECT_EQ(pids_max_of(wanted.sandbox), wanted.pids_max);
    EXPECT_TRUE(narrow(wanted.sandbox, 0, 9));
    connection_.reset();
    EXPECT_TRUE(is_put_back(wanted));
    connect();
    EXPECT_TRUE(narrow(wanted.sandbox, 0, 9));
    stop(SIGKILL);
    EXPECT_EQ(pids_max_of(wanted.sandbox), 9u);
    start();
    EXPECT_TRUE(is_put_back(wanted)) << "by the next warden";
}

TEST_F(WardenTest, FreezesAndThawsAlsoOverItsOwnDeath) {
    const JailPlan wanted = plan();
    ASSERT_TRUE(create(wanted));
    const auto frozen = freeze(wanted.sandbox, 1);
    ASSERT_TRUE(frozen) << frozen.error().message;
    EXPECT_NE(agent_hello(wanted.sandbox).find("ok"), std::string::npos) << "its agent answers";
    EXPECT_EQ(freeze(*Id::from(new_id()), 1).error().kind, ErrorKind::NotFound);
    stop(SIGKILL);
    start();
    EXPECT_TRUE(freeze(wanted.sandbox, 0));
    EXPECT_TRUE(freeze(wanted.sandbox, 1));
    EXPECT_TRUE(destroy(wanted.sandbox)) << "also as it is";
    EXPECT_EQ(objects(), std::vector<std::string>());
}

TEST_F(WardenTest, StartsWhatHasEndedAgainOnItsFiles) {
    const JailPlan wanted = plan();
    ASSERT_TRUE(create(wanted));
    EXPECT_EQ(revive(wanted.sandbox).error().kind, ErrorKind::FailedPrecondition) << "it runs";
    EXPECT_EQ(revive(*Id::from(new_id())).error().kind, ErrorKind::NotFound);
    const std::string file =
        in_pool(jail::kSandboxes) + "/" + std::string(wanted.sandbox.view()) + "/upper/kept";
    std::ofstream(file) << "kept";
    for (int times = 0; times < 2; ++times) {
        ::kill(agents_of(wanted.sandbox).front(), SIGKILL);
        ASSERT_TRUE(receive_as<EndedEvent>());
        const auto revived = revive(wanted.sandbox);
        ASSERT_TRUE(revived) << revived.error().message;
        EXPECT_NE(agent_hello(wanted.sandbox).find("ok"), std::string::npos);
        EXPECT_TRUE(fs::exists(file));
    }
    EXPECT_TRUE(destroy(wanted.sandbox));
    EXPECT_EQ(objects(), std::vector<std::string>());
}

TEST_F(WardenTest, KeepsTheFilesOfPausedSandboxesWhenItStops) {
    const JailPlan paused = plan(), running = plan();
    ASSERT_TRUE(create(paused) && create(running));
    ASSERT_TRUE(freeze(paused.sandbox, 1));
    for (int times = 0; times < 2; ++times) {  // the second one finds it without its nest
        stop(SIGTERM);
        EXPECT_FALSE(fs::exists(group_directory()));
        start();
        EXPECT_EQ(count(), 1u);
    }
    const auto revived = revive(paused.sandbox);
    ASSERT_TRUE(revived) << revived.error().message;
    EXPECT_NE(agent_hello(paused.sandbox).find("ok"), std::string::npos);
    EXPECT_TRUE(destroy(paused.sandbox));
    EXPECT_EQ(objects(), std::vector<std::string>());
}

TEST_F(WardenTest, AStartOnKeptFilesThatBreaksOffCostsNoFile) {
    const JailPlan wanted = plan();
    for (const char* place : {"warden:after_revival_journal", "warden:after_groups",
                              "warden:after_files", "warden:before_running"}) {
        ASSERT_TRUE(create(wanted));
        const std::string upper = "/" + std::string(wanted.sandbox.view()) + "/upper/kept";
        std::ofstream(in_pool(jail::kSandboxes) + upper) << "kept";
        ::kill(agents_of(wanted.sandbox).front(), SIGKILL);
        ASSERT_TRUE(receive_as<EndedEvent>());
        stop(SIGKILL);
        start(place);
        EXPECT_FALSE(revive(wanted.sandbox)) << "nobody answered";
        EXPECT_EQ(await_death(), SIGKILL);
        start();
        EXPECT_EQ(count(), 1u) << place;
        EXPECT_TRUE(fs::exists(in_pool(jail::kSandboxes) + upper)) << place;
        EXPECT_TRUE(processes_in("agent").empty()) << place;
        EXPECT_TRUE(revive(wanted.sandbox)) << place;
        EXPECT_TRUE(destroy(wanted.sandbox));
        EXPECT_EQ(objects(), std::vector<std::string>()) << place;
    }
}

TEST_F(WardenTest, TellsOfASandboxThatEndsByItself) {
    const JailPlan wanted = plan();
    ASSERT_TRUE(create(wanted));
    const auto agents = processes_in("agent");
    ASSERT_EQ(agents.size(), 1u);
    ::kill(agents.front(), SIGKILL);
    const auto ended = receive_as<EndedEvent>();
    ASSERT_TRUE(ended);
    EXPECT_EQ(ended->sandbox, wanted.sandbox);
    EXPECT_EQ(ended->signal, static_cast<uint32_t>(SIGKILL));
    EXPECT_EQ(count(), 1u) << "its files are kept until it is destroyed";
    EXPECT_TRUE(destroy(wanted.sandbox));
    EXPECT_EQ(count(), 0u);
}

TEST_F(WardenTest, LosesTheSandboxesOfADeadNestAndMakesAnother) {
    const JailPlan first = plan(), second = plan();
    ASSERT_TRUE(create(first) && create(second));
    const auto reapers = processes_in("reaper");
    ASSERT_EQ(reapers.size(), 1u) << "one project and template, one nest";
    ::kill(reapers.front(), SIGKILL);
    EXPECT_TRUE(receive_as<EndedEvent>() && receive_as<EndedEvent>());
    EXPECT_TRUE(processes_in("agent").empty());
    EXPECT_TRUE(destroy(first.sandbox) && destroy(second.sandbox));
    EXPECT_TRUE(create(plan()));
    EXPECT_EQ(processes_in("reaper").size(), 1u);
}

TEST_F(WardenTest, KeepsProjectsInNestsOfTheirOwn) {
    JailPlan other = plan();
    other.project = *Id::from(new_id());
    ASSERT_TRUE(create(plan()) && create(other));
    EXPECT_EQ(processes_in("reaper").size(), 2u);
}

TEST_F(WardenTest, TakesOverTheSandboxesOfAKilledWarden) {
    const JailPlan first = plan(), second = plan();
    ASSERT_TRUE(create(first) && create(second));
    const auto agents = processes_in("agent"), reapers = processes_in("reaper");
    ASSERT_EQ(agents.size(), 2u);
    for (int times = 0; times < 2; ++times) {  // the second one finds what was taken over
        stop(SIGKILL);
        start();
        EXPECT_EQ(count(), 2u);
        EXPECT_EQ(processes_in("agent"), agents) << "the same processes";
    }
    EXPECT_NE(agent_hello(first.sandbox).find(R"("ok":true)"), std::string::npos);
    send(UsageRequest{.tag = 5, .sandbox = first.sandbox});
    EXPECT_TRUE(receive_as<UsageReply>());
    EXPECT_EQ(create(first).error().kind, ErrorKind::AlreadyExists);

    const JailPlan third = plan();
    ASSERT_TRUE(create(third)) << "in the same nest, in a slot of its own";
    EXPECT_EQ(processes_in("reaper"), reapers);
    EXPECT_NE(agent_hello(third.sandbox).find(R"("ok":true)"), std::string::npos);
    EXPECT_TRUE(destroy(second.sandbox));
    EXPECT_EQ(processes_in("agent").size(), 2u);

    ::kill(agents_of(first.sandbox).front(), SIGKILL);
    const auto ended = receive_as<EndedEvent>();
    ASSERT_TRUE(ended) << "its nest tells the new warden";
    EXPECT_EQ(ended->sandbox, first.sandbox);
    EXPECT_EQ(ended->signal, static_cast<uint32_t>(SIGKILL));
    EXPECT_TRUE(destroy(first.sandbox) && destroy(third.sandbox));
    EXPECT_EQ(objects(), std::vector<std::string>());
}

TEST_F(WardenTest, TellsOfWhatEndedWhileThereWasNoWarden) {
    const JailPlan living = plan(), dead = plan();
    JailPlan elsewhere = plan();
    elsewhere.project = *Id::from(new_id());
    ASSERT_TRUE(create(living) && create(dead));
    const auto first_nest = processes_in("reaper");
    ASSERT_TRUE(create(elsewhere));
    stop(SIGKILL);
    ::kill(agents_of(dead.sandbox).front(), SIGKILL);
    for (const pid_t reaper : processes_in("reaper")) {
        if (reaper != first_nest.front()) ::kill(reaper, SIGKILL);
    }
    while (processes_in("agent").size() > 1)
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
    start();
    send(HelloRequest{.tag = 9});
    ASSERT_TRUE(receive_as<HelloReply>());
    std::set<Id> ended;
    for (int i = 0; i < 2; ++i) {
        const auto event = receive_as<EndedEvent>();
        ASSERT_TRUE(event);
        ended.insert(event->sandbox);
    }
    EXPECT_EQ(ended, (std::set<Id>{dead.sandbox, elsewhere.sandbox}));
    EXPECT_EQ(count(), 3u) << "their files are kept until they are destroyed";
    EXPECT_TRUE(destroy(dead.sandbox) && destroy(elsewhere.sandbox));
    EXPECT_EQ(count(), 1u);
    EXPECT_NE(agent_hello(living.sandbox).find("ok"), std::string::npos);
    EXPECT_TRUE(create(elsewhere)) << "in a new nest";
}

TEST_F(WardenTest, KeepsANestOfAnEarlierRuntimeUntilItsLastSandboxIsGone) {
    const JailPlan old = plan(), fresh = plan();
    ASSERT_TRUE(create(old));
    const auto old_nest = processes_in("reaper");
    stop(SIGKILL);
    runtime_ = root() + "/runtime";
    fs::copy(runtime(), runtime_, fs::copy_options::recursive);
    std::ofstream(runtime_ + "/kernels/newer") << "newer";
    start();
    EXPECT_NE(agent_hello(old.sandbox).find(R"("ok":true)"), std::string::npos);
    ASSERT_TRUE(create(fresh));
    EXPECT_EQ(processes_in("reaper").size(), 2u) << "the new runtime has a nest of its own";
    EXPECT_TRUE(destroy(old.sandbox));
    for (int i = 0; i < 500 && processes_in("reaper").size() > 1; ++i)
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
    ASSERT_EQ(processes_in("reaper").size(), 1u);
    EXPECT_NE(processes_in("reaper"), old_nest);
    EXPECT_NE(agent_hello(fresh.sandbox).find(R"("ok":true)"), std::string::npos);

    const std::string project = jail::kProjects + ("/" + std::string(project_.view()));
    EXPECT_EQ(names_in(in_pool(jail::kRuntimes)).size(), 2u);
    EXPECT_EQ(names_in(in_pool(project)).size(), 3u) << "its image and two runtimes";
    stop(SIGKILL);
    start();
    EXPECT_EQ(names_in(in_pool(jail::kRuntimes)).size(), 1u) << "nothing uses the old one";
    EXPECT_EQ(names_in(in_pool(project)).size(), 2u);
    EXPECT_TRUE(create(old)) << "with what is left";
}

TEST_F(WardenTest, RemovesOldImages) {
    const auto templates = os::open_file(in_pool(jail::kTemplates), O_RDONLY | O_DIRECTORY);
    const auto before = names_in(in_pool(jail::kTemplates));
    ASSERT_TRUE(templates && os::create_subvolume(*templates, new_id()));
    EXPECT_EQ(names_in(in_pool(jail::kTemplates)).size(), before.size() + 1);
    stop(SIGKILL);
    start();
    const auto after = names_in(in_pool(jail::kTemplates));
    EXPECT_TRUE(std::ranges::is_permutation(after, before)) << "those that are used stay";
    EXPECT_TRUE(create(plan()));
}

TEST_F(WardenTest, RemovesWhatNoBookNames) {
    const JailPlan wanted = plan();
    ASSERT_TRUE(create(wanted));
    stop(SIGKILL);
    fs::remove(layout::warden_journal(data()));
    start();
    EXPECT_EQ(count(), 0u);
    EXPECT_TRUE(processes_in("agent").empty());
    EXPECT_EQ(objects(), std::vector<std::string>());
    EXPECT_TRUE(create(wanted)) << "nothing stands in its way";
}

// Where a warden dies while it makes a sandbox, and whether the next one finds it alive.
class DiesWhileMaking : public WardenTest,
                        public testing::WithParamInterface<std::pair<const char*, size_t>> {};

TEST_P(DiesWhileMaking, AndTheNextOneClearsUp) {
    const auto [place, alive] = GetParam();
    stop(SIGTERM);
    start(place);
    const JailPlan wanted = plan();
    EXPECT_FALSE(create(wanted)) << "nobody answered";
    EXPECT_EQ(await_death(), SIGKILL);
    start();
    EXPECT_EQ(count(), alive);
    EXPECT_EQ(processes_in("agent").size(), alive);
    EXPECT_EQ(objects().size(), 3 * alive) << "socket, files, spool";
    EXPECT_EQ(create(wanted).has_value(), alive == 0);
    EXPECT_TRUE(create(plan()));
    EXPECT_TRUE(destroy(wanted.sandbox));
    EXPECT_EQ(count(), 1u);
}

INSTANTIATE_TEST_SUITE_P(
    Steps, DiesWhileMaking,
    testing::Values(std::pair("warden:after_nest_journal", 0),
                    std::pair("warden:after_nest_groups", 0),
                    std::pair("warden:after_nest_start", 0), std::pair("warden:after_journal", 0),
                    std::pair("warden:after_groups", 0), std::pair("warden:after_listener", 0),
                    std::pair("warden:after_files", 0), std::pair("warden:after_order", 0),
                    std::pair("warden:before_running", 0), std::pair("warden:after_running", 1)));

class DiesWhileRemoving : public WardenTest, public testing::WithParamInterface<const char*> {};

TEST_P(DiesWhileRemoving, AndTheNextOneGoesOn) {
    stop(SIGTERM);
    start(GetParam());
    const JailPlan wanted = plan(), neighbour = plan();
    ASSERT_TRUE(create(wanted) && create(neighbour));
    EXPECT_FALSE(destroy(wanted.sandbox)) << "nobody answered";
    EXPECT_EQ(await_death(), SIGKILL);
    start();
    EXPECT_EQ(count(), 1u);
    EXPECT_EQ(objects().size(), 3u) << "those of the neighbour";
    EXPECT_NE(agent_hello(neighbour.sandbox).find("ok"), std::string::npos);
    EXPECT_TRUE(create(wanted)) << "nothing stands in its way";
}

INSTANTIATE_TEST_SUITE_P(Steps, DiesWhileRemoving,
                         testing::Values("warden:after_ending", "warden:after_socket_removed",
                                         "warden:after_groups_removed",
                                         "warden:after_spool_removed", "warden:after_removed",
                                         "warden:after_gone"));

TEST_F(WardenTest, SaysHowFullThePoolIsAndGrowsIt) {
    send(PoolRequest{.tag = 4});
    const auto before = receive_as<PoolReply>();
    ASSERT_TRUE(before);
    EXPECT_EQ(before->tag, 4u);
    EXPECT_LT(before->free, before->bytes);
    send(GrowPoolRequest{.tag = 5, .bytes = before->bytes});
    EXPECT_EQ(done().error().kind, ErrorKind::InvalidArgument);
    const uint64_t wanted = before->bytes + 128 * limits::kMiB;
    send(GrowPoolRequest{.tag = 6, .bytes = wanted});
    send(GrowPoolRequest{.tag = 7, .bytes = wanted});
    const auto first = receive_as<DoneReply>(), second = receive_as<DoneReply>();
    ASSERT_TRUE(first && second);
    EXPECT_EQ(first->tag, 7u);
    EXPECT_EQ(result_of(*first).error().kind, ErrorKind::FailedPrecondition) << "one at a time";
    EXPECT_TRUE(result_of(*second)) << result_of(*second).error().message;
    send(PoolRequest{.tag = 8});
    EXPECT_EQ(receive_as<PoolReply>()->bytes, wanted);
}

TEST_F(WardenTest, MakesManyAtOnceAlsoThoseThatAreCalledOff) {
    std::vector<JailPlan> plans(24);
    std::ranges::generate(plans, [&] { return plan(); });
    for (const JailPlan& wanted : plans) send(CreateRequest{.tag = 1, .plan = wanted});
    for (size_t i = 0; i < plans.size(); i += 2)
        send(DestroyRequest{.tag = 2, .sandbox = plans[i].sandbox});
    size_t created = 0, called_off = 0, destroyed = 0;
    for (size_t i = 0; i < plans.size() + plans.size() / 2; ++i) {
        const auto reply = receive_as<DoneReply>();
        ASSERT_TRUE(reply);
        if (reply->tag == 2)
            destroyed += reply->status == 0 ? 1 : 0;
        else if (reply->status == 0)
            ++created;
        else if (result_of(*reply).error().kind == ErrorKind::Cancelled)
            ++called_off;
    }
    EXPECT_EQ(destroyed, plans.size() / 2);
    EXPECT_EQ(created + called_off, plans.size());
    EXPECT_EQ(count(), plans.size() / 2);
    EXPECT_EQ(processes_in("agent").size(), plans.size() / 2);
}

TEST_F(WardenTest, LetsNobodyElseIn) {
    const pid_t stranger = ::fork();
    ASSERT_GE(stranger, 0);
    if (stranger == 0) {
        if (::setuid(65'534) != 0) ::_exit(2);
        ::_exit(os::connect_unix(layout::warden_socket(data()), os::SocketKind::SeqPacket) ? 1 : 0);
    }
    int status = 0;
    ::waitpid(stranger, &status, 0);
    EXPECT_EQ(status, 0);
    const auto second =
        serve({.data = data(), .runtime = runtime(), .instance = kName, .server_uid = kServer});
    ASSERT_FALSE(second);
    EXPECT_EQ(second.error().kind, ErrorKind::FailedPrecondition)
        << "one warden for a data directory";
    EXPECT_EQ(count(), 0u) << "and the first one goes on";
}

}  // namespace
}  // namespace cloister::warden
