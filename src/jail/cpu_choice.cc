#include "jail/cpu_choice.h"

namespace cloister::jail {

cpu_set_t choose_cpus(const cpu_set_t& allowed, uint32_t count, uint32_t slot) {
    const auto there = static_cast<uint32_t>(CPU_COUNT(&allowed));
    if (count >= there) return allowed;
    const uint32_t first = slot * count % there;
    cpu_set_t chosen;
    CPU_ZERO(&chosen);
    uint32_t place = 0;  // of a CPU among the allowed ones
    for (size_t cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
        if (!CPU_ISSET(cpu, &allowed)) continue;
        if ((place + there - first) % there < count) CPU_SET(cpu, &chosen);
        ++place;
    }
    return chosen;
}

}  // namespace cloister::jail
