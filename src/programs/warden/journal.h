// The warden's book of host objects: one line for each sandbox that it began to make and each that
// is gone. What a killed warden left behind stands in it.
//
// Lines are appended without fsync: they are there after a kill -9, and a power cut takes every
// process, cgroup and mount with it, while files are found by their names. A book that has become
// long is written anew.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "os/fd.h"

namespace cloister::warden {

struct JournalEntry {
    std::string nest;
    uint32_t slot = 0;
};
using JournalEntries = std::map<std::string, JournalEntry>;  // by sandbox id

// The sandboxes that were made and are not gone. A last line that was torn by a kill counts as not
// written; so does any other that is not of ours.
JournalEntries parse_journal(std::string_view text);

class Journal {
  public:
    // Opens or makes the file and reads what is left in it.
    static Result<Journal> open(const std::string& path);
    // Sandboxes that were made and are not gone; right after open(), those of a former warden.
    const JournalEntries& entries() const { return entries_; }

    Result<void> creating(std::string_view sandbox, const JournalEntry& entry);
    Result<void> removed(std::string_view sandbox);

  private:
    Journal(std::string path, os::Fd file, JournalEntries entries, size_t bytes)
        : path_(std::move(path)),
          file_(std::move(file)),
          entries_(std::move(entries)),
          bytes_(bytes) {}
    Result<void> append(std::string_view line);
    Result<void> compact();

    std::string path_;
    os::Fd file_;
    JournalEntries entries_;
    size_t bytes_;  // of the file
};

}  // namespace cloister::warden
