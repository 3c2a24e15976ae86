#include "engine/lifespan.h"

#include <algorithm>

namespace cloister::engine {
namespace {

struct Candidate {
    NextEnd end;
    int64_t whole_ms = 0;  // how long it takes from its beginning
};

void consider(std::optional<Candidate>& first, Candidate other) {
    if (!first || other.end.in_ms < first->end.in_ms) first = other;
}

}  // namespace

std::string_view to_string(AtEnd what) {
    return what == AtEnd::Pause ? "pause" : "kill";
}

std::optional<AtEnd> at_end_from(std::string_view word) {
    if (word == "pause") return AtEnd::Pause;
    if (word == "kill") return AtEnd::Kill;
    return std::nullopt;
}

std::string_view to_string(LifeLimit limit) {
    switch (limit) {
        case LifeLimit::Idle:
            return "idle";
        case LifeLimit::Deadline:
            return "deadline";
        case LifeLimit::MaxLife:
            return "max_life";
    }
    return "idle";
}

std::optional<NextEnd> next_end(const LifeFacts& facts) {
    std::optional<Candidate> first;
    const Lifespan& span = facts.span;
    if (facts.max_life_ms) {
        const int64_t left = facts.created_ms + *facts.max_life_ms - facts.now_ms;
        consider(first, {.end = {.limit = LifeLimit::MaxLife, .action = AtEnd::Kill, .in_ms = left},
                         .whole_ms = *facts.max_life_ms});
    }
    if (!facts.paused && span.deadline_ms) {
        consider(first, {.end = {.limit = LifeLimit::Deadline,
                                 .action = span.on_deadline,
                                 .in_ms = *span.deadline_ms - facts.now_ms},
                         .whole_ms = *span.deadline_ms - facts.created_ms});
    }
    if (!facts.paused && facts.idle_ms) {
        consider(first, {.end = {.limit = LifeLimit::Idle,
                                 .action = span.at_idle(),
                                 .in_ms = span.idle_limit_ms() - *facts.idle_ms},
                         .whole_ms = span.idle_limit_ms()});
    }
    if (!first) return std::nullopt;
    NextEnd end = first->end;
    const bool worth_it = end.action == AtEnd::Kill || end.limit != LifeLimit::Idle;
    end.warn = worth_it && end.in_ms <= std::min(kEndWarningMs, first->whole_ms / 2);
    return end;
}

}  // namespace cloister::engine
