// How long this program's turns on a CPU are, and so how soon it gets one.
#pragma once

namespace cloister::os {

// Asks for short turns: a program that wakes up with less to do than the one that is running takes
// over at once instead of at the next tick of the clock (up to 4 ms). It gets no more CPU time for
// that, and what it starts has ordinary turns again. Kernels before 6.12 know nothing of it, and
// nothing changes there. (sched_setattr(2), sched_runtime of SCHED_OTHER.)
void ask_for_short_turns();

}  // namespace cloister::os
