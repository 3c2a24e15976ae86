// The boundary probe: a static program that is put into a sandbox and tries one thing after the
// other. It prints a line for each, `NAME VERDICT`, and judges nothing itself: the test compares
// the lines with golden.txt.
#pragma once

#include <functional>
#include <span>
#include <string>

namespace probe {

// Answers -1 with errno set, as system calls do, or anything else for success. Runs in a child of
// its own, so that what it breaks or what kills it stays there.
struct Attempt {
    const char* name;
    std::function<long()> call;
};

// `allowed`, `denied ERRNO`, `killed SIGNAL`, or `hangs`.
std::string verdict_of(const Attempt& attempt);

// A fact that is read off instead of tried.
struct Fact {
    const char* name;
    std::function<std::string()> read;
};

std::span<const Attempt> denied_calls();
std::span<const Attempt> needed_calls();
std::span<const Attempt> paths();
std::span<const Fact> facts();

// A system call by its number, for those that libc has no function for.
long call(long number, long a = 0, long b = 0, long c = 0, long d = 0, long e = 0, long f = 0);
long address(const void* pointer);
// Success for whatever is no refusal: the call was reached, and only disliked its arguments.
long reached(long result);

}  // namespace probe
