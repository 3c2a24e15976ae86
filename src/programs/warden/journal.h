// The warden's book of host objects: each nest and each sandbox, and how far its life has come. A
// line is written before the step that it names, so whatever a killed warden left stands in it.
//
//     nest NEST PROJECT REVISION RUNTIME FIRST_ID        making NEST SANDBOX SLOT and its plan
//     no-nest NEST                                        running | ending | gone SANDBOX
//     reviving NEST SANDBOX SLOT and its plan
//
// A plan names its project and template itself, because a sandbox that has ended may outlive its
// nest.
//
// Lines are appended without fsync (measured: 1 µs each, where fdatasync takes 0.1 to 4 ms): they
// are there after a kill -9, and a power cut takes every process, cgroup and mount with it, while
// files are found by their names. A book that has become long is written anew.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "os/fd.h"
#include "wire/warden.h"

namespace cloister::warden {

struct NestEntry {
    Id project;
    Id template_revision;
    std::string runtime;
    uint32_t first_id = 0;  // of its host ids
};

// Reviving: has ended, and is being started again on its files.
enum class Progress { Making, Running, Ending, Reviving };

struct SandboxEntry {
    std::string nest;
    uint32_t slot = 0;
    Progress progress = Progress::Making;
    JailPlan plan;
};

struct Book {
    std::map<std::string, NestEntry> nests;
    std::map<std::string, SandboxEntry> sandboxes;
};

// What was made and is not gone. A last line that was torn by a kill counts as not written; so does
// any other that is not of ours, and a sandbox whose nest was never written.
Book parse_journal(std::string_view text);

class Journal {
  public:
    // Opens or makes the file and reads what is left in it.
    static Result<Journal> open(const std::string& path);
    // What was made and is not gone; right after open(), the former warden's.
    const Book& book() const { return book_; }

    Result<void> making_nest(const std::string& nest, const NestEntry& entry);
    Result<void> nest_gone(const std::string& nest);
    Result<void> making(const std::string& nest, uint32_t slot, const JailPlan& plan);
    Result<void> reviving(const std::string& nest, uint32_t slot, const JailPlan& plan);
    Result<void> running(std::string_view sandbox);
    Result<void> ending(std::string_view sandbox);
    Result<void> gone(std::string_view sandbox);

  private:
    Journal(std::string path, os::Fd file, Book book, size_t bytes)
        : path_(std::move(path)), file_(std::move(file)), book_(std::move(book)), bytes_(bytes) {}
    Result<void> enter(const SandboxEntry& entry);
    Result<void> append(const std::string& line);
    Result<void> compact();

    std::string path_;
    os::Fd file_;
    Book book_;
    size_t bytes_;  // of the file
};

}  // namespace cloister::warden
