// Operations on files as their connection sees them: served by a forked child with our own rights.
#include "programs/agent/file_ops.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "base/ids.h"
#include "base/limits.h"
#include "os/socket.h"
#include "wire/tar.h"

namespace cloister::agent {
namespace {

namespace fs = std::filesystem;

class FileOpsTest : public testing::Test {
  protected:
    void SetUp() override {
        home_ = fs::temp_directory_path() / ("files-" + new_id());
        fs::create_directories(home_);
    }
    void TearDown() override {
        end_serving();
        fs::remove_all(home_);
    }

    // Begins an operation; `fields` are those behind "op".
    void begin(const std::string& op, const std::string& fields) {
        end_serving();
        auto pair = os::make_socket_pair(os::SocketKind::Stream).value();
        client_ = std::move(pair.ours);
        ASSERT_TRUE(os::set_blocking(client_, os::Blocking::Yes));
        const timeval patience{.tv_sec = 20, .tv_usec = 0};
        ::setsockopt(client_.get(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
        decoder_ = FrameDecoder();
        const auto request =
            decode_file_request(fmt::format(R"({{"op":"file.{}",{}}})", op, fields), home_);
        ASSERT_TRUE(request) << request.error().message;
        ASSERT_TRUE(os::set_blocking(pair.theirs, os::Blocking::Yes));
        server_ = ::fork();
        if (server_ == 0) {
            client_.reset();
            serve_file(*request, pair.theirs);
            ::_exit(0);
        }
    }
    void end_serving() {
        client_.reset();
        if (server_ > 0) ::waitpid(server_, nullptr, 0);
        server_ = -1;
    }
    std::optional<Frame> next() {
        for (;;) {
            auto frame = decoder_.next().value();
            if (frame) return frame;
            std::string chunk(limits::kStreamChunk, '\0');
            const ssize_t got = ::read(client_.get(), chunk.data(), chunk.size());
            if (got <= 0) return std::nullopt;
            decoder_.feed(std::string_view(chunk).substr(0, static_cast<size_t>(got)));
        }
    }
    json::object answer() {
        const auto frame = next();
        if (!frame) return {{"ok", "lost"}};
        return parse_object(frame->payload).value();
    }
    json::object ask(const std::string& op, const std::string& fields) {
        begin(op, fields);
        return answer();
    }
    std::string kind(const std::string& op, const std::string& fields) {
        const auto got = ask(op, fields);
        if (got.at("ok").as_bool()) return "ok";
        return std::string(got.at("error").as_object().at("kind").as_string());
    }
    void send_data(std::string_view bytes) const {
        std::string frame;
        append_frame(frame, FrameKind::Data, bytes);
        (void)os::write_all(client_, frame);
    }
    json::object upload(const std::string& op, const std::string& fields, std::string_view bytes) {
        const auto ready = ask(op, fields);
        if (!ready.at("ok").as_bool()) return ready;
        if (!bytes.empty()) send_data(bytes);
        send_data("");
        return answer();
    }
    std::string data() {
        std::string all;
        while (auto frame = next()) {
            if (frame->kind != FrameKind::Data) return "(" + frame->payload + ")";
            if (frame->payload.empty()) return all;
            all += frame->payload;
        }
        return "(broken off)";
    }

    void put(const std::string& path, const std::string& text = "x") const {
        fs::create_directories((home_ / path).parent_path());
        std::ofstream(home_ / path) << text;
    }
    std::string get(const std::string& path) const {
        std::ifstream in(home_ / path);
        return {std::istreambuf_iterator<char>(in), {}};
    }
    std::vector<std::string> names() const {
        std::vector<std::string> out;
        for (const auto& entry : fs::recursive_directory_iterator(home_))
            out.push_back(entry.path().lexically_relative(home_));
        std::ranges::sort(out);
        return out;
    }
    std::vector<std::string> listed(const std::string& fields, std::string* next_page = nullptr) {
        const auto got = ask("list", fields);
        std::vector<std::string> out;
        EXPECT_TRUE(got.at("ok").as_bool()) << json::serialize(got);
        for (const auto& entry : got.at("entries").as_array()) {
            out.emplace_back(
                fs::path(std::string(entry.at("path").as_string())).lexically_relative(home_));
        }
        if (next_page != nullptr) {
            const auto* more = got.if_contains("next");
            *next_page = more == nullptr ? "" : std::string(more->as_string());
        }
        return out;
    }

    fs::path home_;
    os::Fd client_;
    FrameDecoder decoder_;
    pid_t server_ = -1;
};

TEST_F(FileOpsTest, WritesAsAWhole) {
    const auto done =
        upload("write", R"("path":"a/b","mode":416,"metadata":{"k":"v"},"durable":true)", "new");
    EXPECT_EQ(done.at("size").as_int64(), 3);
    const auto& entry = done.at("entry").as_object();
    EXPECT_EQ(entry.at("mode").as_int64(), 0640);
    EXPECT_EQ(entry.at("metadata").as_object().at("k").as_string(), "v");
    EXPECT_EQ(get("a/b"), "new");
    // The mode of a file stays when it is replaced.
    (void)upload("write", R"("path":"a/b")", "newer");
    EXPECT_EQ(fs::status(home_ / "a/b").permissions(), fs::perms(0640));
    EXPECT_EQ(names(), (std::vector<std::string>{"a", "a/b"}));
}

TEST_F(FileOpsTest, ABrokenUploadLeavesNothing) {
    put("kept", "old");
    for (const std::string path : {"kept", "fresh"}) {
        ASSERT_TRUE(ask("write", fmt::format(R"("path":"{}")", path)).at("ok").as_bool());
        send_data("new");
        end_serving();
    }
    EXPECT_EQ(get("kept"), "old");
    EXPECT_EQ(names(), (std::vector<std::string>{"kept"}));
}

TEST_F(FileOpsTest, Appends) {
    (void)upload("write", R"("path":"log","append":true)", "one");
    (void)upload("write", R"("path":"log","append":true)", "two");
    EXPECT_EQ(get("log"), "onetwo");
}

TEST_F(FileOpsTest, WritesOnlyWhatIsAsExpected) {
    const auto first = upload("write", R"("path":"f","if_absent":true)", "1");
    const std::string etag(first.at("entry").as_object().at("etag").as_string());
    EXPECT_EQ(kind("write", R"("path":"f","if_absent":true)"), "failed_precondition");
    EXPECT_EQ(kind("write", R"("path":"f","if_match":"other")"), "failed_precondition");
    EXPECT_EQ(kind("write", R"("path":"g","if_match":"*")"), "failed_precondition");
    const auto second = upload("write", fmt::format(R"("path":"f","if_match":"{}")", etag), "2");
    EXPECT_TRUE(second.at("ok").as_bool());
    EXPECT_EQ(kind("write", fmt::format(R"("path":"f","if_match":"{}")", etag)),
              "failed_precondition");
    // Two who want to be the first: one is.
    ASSERT_TRUE(ask("write", R"("path":"n","if_absent":true)").at("ok").as_bool());
    put("n", "theirs");
    send_data("");
    EXPECT_FALSE(answer().at("ok").as_bool());
    EXPECT_EQ(get("n"), "theirs");
}

TEST_F(FileOpsTest, WritesThroughALinkToAFile) {
    put("target", "old");
    fs::create_symlink("target", home_ / "link");
    fs::create_symlink("nowhere", home_ / "dangling");
    fs::create_symlink(".", home_ / "dir");
    (void)upload("write", R"("path":"link")", "new");
    EXPECT_EQ(get("target"), "new");
    EXPECT_TRUE(fs::is_symlink(home_ / "link"));
    (void)upload("write", R"("path":"dangling")", "new");
    EXPECT_FALSE(fs::is_symlink(home_ / "dangling"));
    EXPECT_EQ(kind("write", R"("path":"dir")"), "invalid_argument");
    EXPECT_EQ(kind("write", R"("path":"/dev/null")"), "invalid_argument");
}

TEST_F(FileOpsTest, ReadsARangeOrPassesTheDescriptor) {
    put("f", "0123456789");
    EXPECT_EQ(ask("read", R"("path":"f","offset":3,"length":4)").at("size").as_int64(), 10);
    EXPECT_EQ(data(), "3456");
    begin("read", R"("path":"f","descriptor":true)");
    auto received = os::receive_with_fds(client_, 4096).value();
    ASSERT_EQ(received.fds.size(), 1U);
    EXPECT_EQ(os::read_all(received.fds[0], 100).value(), "0123456789");
    EXPECT_EQ(::fcntl(received.fds[0].get(), F_GETFL) & O_ACCMODE, O_RDONLY);
    // What the kernel makes up while it is read comes as bytes.
    begin("read", R"("path":"/proc/self/stat","descriptor":true)");
    EXPECT_FALSE(answer().contains("descriptor"));
    EXPECT_FALSE(data().empty());
    EXPECT_EQ(kind("read", R"("path":"/proc/self/root/etc/passwd")"), "invalid_argument");
}

TEST_F(FileOpsTest, ListsInPages) {
    for (const char* path : {"b/1", "b/2/x", "a", "b-", "c"}) put(path);
    EXPECT_EQ(listed(R"("path":".")"), (std::vector<std::string>{"a", "b", "b-", "c"}));
    const std::vector<std::string> all = {"a", "b", "b/1", "b/2", "b/2/x", "b-", "c"};
    EXPECT_EQ(listed(R"("path":".","depth":9)"), all);
    for (const size_t limit : {1U, 2U, 3U, 6U}) {
        std::vector<std::string> together;
        std::string after;
        do {
            const auto page =
                listed(fmt::format(R"("path":".","depth":9,"limit":{},"after":"{}")", limit, after),
                       &after);
            EXPECT_LE(page.size(), limit);
            together.insert(together.end(), page.begin(), page.end());
        } while (!after.empty());
        EXPECT_EQ(together, all) << limit;
    }
    EXPECT_EQ(kind("list", R"("path":"a")"), "invalid_argument");
    EXPECT_EQ(kind("list", R"("path":"none")"), "not_found");
}

TEST_F(FileOpsTest, TellsWhatIsThere) {
    put("f");
    fs::create_symlink("f", home_ / "l");
    const auto link = ask("stat", R"("path":"l")").at("entry").as_object();
    EXPECT_EQ(link.at("type").as_string(), "symlink");
    EXPECT_EQ(link.at("target").as_string(), "f");
    EXPECT_EQ(link.at("target_type").as_string(), "file");
    const auto file = ask("stat", R"("path":"l","follow":true)").at("entry").as_object();
    EXPECT_EQ(file.at("type").as_string(), "file");
    EXPECT_EQ(ask("stat", R"("path":"/")").at("entry").as_object().at("type").as_string(),
              "directory");
    EXPECT_EQ(kind("stat", R"("path":"none")"), "not_found");
}

TEST_F(FileOpsTest, MakesMovesCopiesRemoves) {
    EXPECT_TRUE(ask("mkdir", R"("path":"a/b","mode":448)").at("created").as_bool());
    EXPECT_FALSE(ask("mkdir", R"("path":"a/b")").at("created").as_bool());
    EXPECT_EQ(kind("mkdir", R"("path":"a/b","exclusive":true)"), "already_exists");
    put("a/b/f", "text");
    fs::create_symlink("f", home_ / "a/b/l");
    EXPECT_EQ(kind("copy", R"("path":"a","to":"c")"), "invalid_argument");
    EXPECT_EQ(kind("copy", R"("path":"a","to":"c","recursive":true)"), "ok");
    EXPECT_EQ(get("c/b/f"), "text");
    EXPECT_EQ(fs::read_symlink(home_ / "c/b/l"), "f");
    EXPECT_EQ(kind("copy", R"("path":"a/b/f","to":"new/dir/f")"), "ok");
    EXPECT_EQ(kind("copy", R"("path":"a/b/f","to":"new/dir/f")"), "already_exists");
    EXPECT_EQ(kind("copy", R"("path":"a/b/f","to":"new/dir/f","overwrite":true)"), "ok");
    EXPECT_EQ(kind("copy", R"("path":"c","to":"c/inside","recursive":true)"), "ok");
    EXPECT_EQ(get("c/inside/b/f"), "text");
    EXPECT_EQ(kind("move", R"("path":"c","to":"new/dir/f")"), "already_exists");
    EXPECT_EQ(kind("move", R"("path":"c","to":"d/e")"), "ok");
    EXPECT_EQ(kind("remove", R"("path":"d")"), "failed_precondition");
    EXPECT_EQ(kind("remove", R"("path":"d","recursive":true)"), "ok");
    EXPECT_EQ(kind("remove", R"("path":"d")"), "not_found");
    EXPECT_EQ(kind("remove", R"("path":"a/..","recursive":true)"), "invalid_argument");
    EXPECT_EQ(names(), (std::vector<std::string>{"a", "a/b", "a/b/f", "a/b/l", "new", "new/dir",
                                                 "new/dir/f"}));
}

TEST_F(FileOpsTest, MovesToAnotherFileSystem) {
    const std::string there = "/dev/shm/files-" + new_id();
    put("d/f", "text");
    EXPECT_EQ(kind("move", fmt::format(R"("path":"d","to":"{}")", there)), "ok");
    EXPECT_FALSE(fs::exists(home_ / "d"));
    EXPECT_EQ(kind("move", fmt::format(R"("path":"{}","to":"back")", there)), "ok");
    EXPECT_EQ(get("back/f"), "text");
}

TEST_F(FileOpsTest, ChangesModeAndMetadata) {
    put("f");
    (void)ask("change", R"("path":"f","mode":384,"metadata":{"a":"1","b":"2"})");
    const auto entry = ask("change", R"("path":"f","metadata":{"b":"3"})").at("entry").as_object();
    EXPECT_EQ(entry.at("mode").as_int64(), 0600);
    EXPECT_EQ(json::serialize(entry.at("metadata")), R"({"b":"3"})");
}

TEST_F(FileOpsTest, Searches) {
    put("src/a.py", "one\ntwo needle\nthree\nNeedle needle\n");
    put("src/b.txt", "needle");
    put("binary", std::string("\0needle", 7));
    const auto by_name = ask("search", R"("path":".","glob":"*.py")").at("matches").as_array();
    ASSERT_EQ(by_name.size(), 1U);
    const auto hits = ask("search", R"("path":".","text":"needle")").at("matches").as_array();
    ASSERT_EQ(hits.size(), 3U);
    EXPECT_EQ(hits[0].at("line").as_int64(), 2);
    EXPECT_EQ(hits[0].at("column").as_int64(), 5);
    EXPECT_EQ(hits[0].at("text").as_string(), "two needle");
    EXPECT_EQ(hits[1].at("line").as_int64(), 4);
    const auto two = ask("search", R"("path":".","text":"NEEDLE","ignore_case":true,"limit":2)");
    EXPECT_EQ(two.at("matches").as_array().size(), 2U);
    EXPECT_TRUE(two.at("truncated").as_bool());
    // Across the borders of what is read at once.
    put("large", std::string(262'140, '.') + "\nneedle\n" + std::string(600'000, '.') + "needle");
    const auto large = ask("search", R"("path":".","glob":"large","text":"needle")");
    ASSERT_EQ(large.at("matches").as_array().size(), 2U);
    EXPECT_EQ(large.at("matches").as_array()[1].at("line").as_int64(), 3);
}

TEST_F(FileOpsTest, PacksAndUnpacks) {
    put("d/a", std::string(100'000, 'a'));
    put("d/b/c", "text");
    fs::create_symlink("a", home_ / "d/l");
    fs::permissions(home_ / "d/a", fs::perms(0750));
    ASSERT_TRUE(ask("pack", R"("path":"d")").at("ok").as_bool());
    const std::string archive = data();
    const auto done = upload("unpack", R"("path":"new/e","durable":true)", archive);
    EXPECT_EQ(done.at("entries").as_int64(), 4) << json::serialize(done);
    EXPECT_EQ(get("new/e/a"), std::string(100'000, 'a'));
    EXPECT_EQ(fs::status(home_ / "new/e/a").permissions(), fs::perms(0750));
    EXPECT_EQ(get("new/e/b/c"), "text");
    EXPECT_EQ(fs::read_symlink(home_ / "new/e/l"), "a");
    put("new/e/own", "stays");
    EXPECT_TRUE(upload("unpack", R"("path":"new/e")", archive).at("ok").as_bool());
    EXPECT_EQ(get("new/e/own"), "stays");
}

TEST_F(FileOpsTest, RefusesAnArchiveAsAWhole) {
    const std::string good = tar_header({.path = "good"});
    put("there/name/inner");
    for (const std::string& bad : {
             tar_header({.path = "../evil"}), tar_header({.path = "/evil"}),
             tar_header({.kind = TarKind::Symlink, .path = "s", .target = "/"}) +
                 tar_header({.path = "s/evil"}),
             tar_header({.kind = TarKind::HardLink, .path = "h", .target = "../kept"}),
             tar_header({.path = "cut", .size = 1000}), std::string(512, 'x'),
             tar_header({.path = "name"}),  // a directory is in its place
         }) {
        EXPECT_FALSE(upload("unpack", R"("path":"there")", good + bad).at("ok").as_bool());
        EXPECT_EQ(names(), (std::vector<std::string>{"there", "there/name", "there/name/inner"}));
    }
}

TEST_F(FileOpsTest, Watches) {
    put("d/old");
    ASSERT_TRUE(ask("watch", R"("path":".","recursive":true)").at("ok").as_bool());
    const auto expect = [this](const std::string& event, const std::string& name,
                               const std::string& to = "") {
        for (;;) {
            const auto got = answer();
            const auto* kind = got.if_contains("event");
            ASSERT_TRUE(kind != nullptr) << json::serialize(got);
            // Writes and attributes come between, as many as the kernel likes.
            const bool extra = kind->as_string() == "write" || kind->as_string() == "chmod";
            if (extra && event != kind->as_string()) continue;
            EXPECT_EQ(kind->as_string(), event);
            EXPECT_EQ(got.at("name").as_string(), name);
            if (!to.empty()) EXPECT_EQ(got.at("to_name").as_string(), to);
            return;
        }
    };
    put("d/new");
    expect("create", "d/new");
    expect("write", "d/new");
    fs::create_directories(home_ / "e/f");
    expect("create", "e");
    expect("create", "e/f");
    put("e/f/deep");
    expect("create", "e/f/deep");
    fs::rename(home_ / "e", home_ / "g");
    expect("rename", "e", "g");
    put("g/f/more");
    expect("create", "g/f/more");
    fs::remove(home_ / "d/new");
    expect("remove", "d/new");
    fs::permissions(home_ / "d/old", fs::perms(0600));
    expect("chmod", "d/old");
}

TEST_F(FileOpsTest, AWatchEndsWithItsDirectory) {
    put("d/f");
    ASSERT_TRUE(ask("watch", R"("path":"d")").at("ok").as_bool());
    fs::remove_all(home_ / "d");
    std::string last;
    for (;;) {
        const auto got = answer();
        if (!got.contains("event")) break;
        last = got.at("event").as_string();
    }
    EXPECT_EQ(last, "ended");
}

}  // namespace
}  // namespace cloister::agent
