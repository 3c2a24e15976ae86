// ZygoteDoor: interpreters that the nest's zygote forks into this sandbox (wire/fork_order.h).
//
//     if (door.suits(env)) TRY_OK(door.ask(ours, {control, out, err}));
//     …                                                     // `ours` is readable
//     pid_t pid = TRY(door.admit(ours));
//
// The zygote is code of the project and is not believed: the kernel says which process spoke, and
// that process is put into the sandbox's cgroups before it may go on.
#pragma once

#include <sys/types.h>

#include <string_view>

#include "base/result.h"
#include "os/fd.h"
#include "programs/agent/birth_record.h"
#include "wire/json.h"

namespace cloister::agent {

class ZygoteDoor {
  public:
    explicit ZygoteDoor(const Birth& birth) : birth_(birth) {}

    // Whether an interpreter with these additions to its environment can be a forked one: none of
    // them is read before a program runs.
    bool suits(const StringMap& env) const;
    // Asks for one that has these ends; `ours` is the other end of `control`. If there is no zygote
    // it closes without a word.
    struct Ends {
        const os::Fd &control, &out, &err;
    };
    Result<void> ask(const os::Fd& ours, const Ends& theirs) const;
    // Who said on `ours` that it is there, now in the sandbox's cgroups and sent on its way.
    Result<pid_t> admit(const os::Fd& ours) const;

  private:
    const Birth& birth_;
};

// Whether an interpreter or one of its libraries reads the variable when it starts or is loaded.
bool read_at_start(std::string_view variable);

}  // namespace cloister::agent
