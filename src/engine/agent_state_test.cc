#include "engine/agent_state.h"

#include <gtest/gtest.h>

#include "base/ids.h"
#include "base/limits.h"
#include "engine/agent.h"

namespace cloister::engine {
namespace {

AgentState decode(std::string_view text) {
    return decode_agent_state(parse_agent_object(text).value());
}

TEST(AgentState, HoldsContextsAndRuns) {
    const AgentState state = decode(
        R"({"ok":true,"contexts":[{"context":"aaaaaaaaaaaaaaaaaaaa","language":"python",
            "ready":true,"started":"forked","busy":true},
            {"context":"bbbbbbbbbbbbbbbbbbbb","language":"bash","ready":false,"started":"plain"}],
            "runs":[{"run":"cccccccccccccccccccc","context":"aaaaaaaaaaaaaaaaaaaa","ended":true}]})");
    ASSERT_EQ(state.contexts.size(), 2U);
    EXPECT_EQ(state.contexts[0].language, "python");
    EXPECT_TRUE(state.contexts[0].ready);
    EXPECT_EQ(state.contexts[0].started_as, "forked");
    EXPECT_FALSE(state.contexts[1].ready);
    EXPECT_TRUE(state.knows("cccccccccccccccccccc"));
    EXPECT_FALSE(state.knows("aaaaaaaaaaaaaaaaaaaa"));
}

TEST(AgentState, NonsenseIsLeftOut) {
    EXPECT_TRUE(decode("{}").runs.empty());
    const AgentState state = decode(
        R"({"contexts":[7,{"context":"../../etc","language":"python"},
            {"context":"aaaaaaaaaaaaaaaaaaaa","language":7},
            {"context":"aaaaaaaaaaaaaaaaaaaa","language":"a very long word that is no language, and none that a kernel of Jupyter could have"}],
            "runs":[{"run":"x"},{"run":["aaaaaaaaaaaaaaaaaaaa"]},"aaaaaaaaaaaaaaaaaaaa"]})");
    EXPECT_TRUE(state.contexts.empty());
    EXPECT_TRUE(state.runs.empty());
}

TEST(AgentState, ListsAreBounded) {
    json::array contexts, runs;
    for (size_t i = 0; i < 2'000; ++i) {
        contexts.push_back({{"context", new_id()}, {"language", "python"}});
        runs.push_back({{"run", new_id()}});
    }
    const AgentState state = decode_agent_state({{"contexts", contexts}, {"runs", runs}});
    EXPECT_EQ(state.contexts.size(), limits::kContextsMax);
    EXPECT_EQ(state.runs.size(), limits::kUnclaimedRunsMax + limits::kContextsMax);
}

}  // namespace
}  // namespace cloister::engine
