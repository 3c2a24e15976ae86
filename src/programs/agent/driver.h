// Driver: how the interpreter of a language is started, and what has to be done its way.
#pragma once

#include <string>
#include <vector>

namespace cloister::agent {

// SIGINT goes to the whole process group in any case. An interpreter whose handlers cannot run
// while code loops asks for a message besides.
enum class Interrupt { Signal, SignalAndMessage };

struct Driver {
    std::vector<std::string> argv;
    Interrupt interrupt = Interrupt::Signal;
    // Whether the nest's zygote is this driver, waiting to be forked.
    bool forkable = false;
    // Where the FIFO of a run's stdin is made, for an interpreter that cannot take a descriptor
    // from a message; empty: it can.
    std::string fifo_directory;
};

}  // namespace cloister::agent
