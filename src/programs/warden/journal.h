// The warden's book of host objects: one line for each sandbox that it began to make and each that
// is gone. What a killed warden left behind stands in it.
//
// Lines are appended without fsync: they are there after a kill -9, and a power cut takes every
// process, cgroup and mount with it, while files are found by their names.
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
    const JournalEntries& leftovers() const { return leftovers_; }
    // Begins a new book. Call when the leftovers are removed.
    Result<void> clear();

    Result<void> creating(std::string_view sandbox, const JournalEntry& entry);
    Result<void> removed(std::string_view sandbox);

  private:
    Journal(std::string path, os::Fd file, JournalEntries leftovers)
        : path_(std::move(path)), file_(std::move(file)), leftovers_(std::move(leftovers)) {}
    std::string path_;
    os::Fd file_;
    JournalEntries leftovers_;
};

}  // namespace cloister::warden
