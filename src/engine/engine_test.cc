#include "engine/engine.h"

#include <gtest/gtest.h>

#include "base/time.h"
#include "engine/test_fakes.h"

namespace cloister::engine {
namespace {

std::string stdout_of(const Run& run) {
    const json::object record = run.to_json(Detail::Whole);
    return std::string(record.at("stdout").as_object().at("text").as_string());
}

std::string reason_of(const Run& run) {
    return std::string(to_string(run.end_value().reason));
}

std::vector<Event> all_events(const Run& run) {
    return run.log()->attach(0).take(SIZE_MAX);
}

// --- Runs and their contexts ---

Task<void> one_run(Checks&) {
    Bench bench;
    co_await bench.start();
    const auto sandbox = co_await bench.sandbox();
    const auto run = bench.queue(sandbox, "print hello");
    EXPECT_EQ(run->state(), RunState::Queued);
    co_await Bench::end_of(run);
    const json::object record = run->to_json(Detail::Whole);
    EXPECT_EQ(record.at("end_reason").as_string(), "ok");
    EXPECT_EQ(record.at("exit_code").as_int64(), 0);
    EXPECT_EQ(record.at("started_as").as_string(), "plain");
    EXPECT_EQ(record.at("metrics").as_object().at("cpu_ms").as_int64(), 3);
    EXPECT_EQ(stdout_of(*run), "hello");
    const std::vector<Event> events = all_events(*run);
    EXPECT_EQ(events.size(), 3U);
    EXPECT_EQ(events.back().type, "ended");
    EXPECT_EQ(record.at("last_event").as_uint64(), events.back().number);
    EXPECT_EQ(parse_object(events.back().data)->at("last_event").as_int64(), 3);
    co_await bench.stop();
}
TEST(Engine, ARunGoesFromQueuedToEnded) {
    on_loop(one_run);
}

Task<void> queue_order(Checks&) {
    Bench bench;
    co_await bench.start();
    const auto sandbox = co_await bench.sandbox();
    std::vector<std::shared_ptr<Run>> runs;
    for (int i = 0; i < 10; ++i) runs.push_back(bench.queue(sandbox, "print " + std::to_string(i)));
    co_await Bench::end_of(runs.back());
    for (int i = 0; i < 10; ++i)
        EXPECT_EQ(stdout_of(*runs[static_cast<size_t>(i)]), std::to_string(i));
    FakeAgent& agent = bench.agent_of(*sandbox);
    EXPECT_EQ(agent.ran.front(), "print 0");
    EXPECT_EQ(agent.ran.back(), "print 9");
    EXPECT_EQ(agent.prepared, 1U);
    co_await bench.stop();
}
TEST(Engine, OneContextRunsOneAtATimeInOrder) {
    on_loop(queue_order);
}

Task<void> full_queue(Checks&) {
    Bench bench;
    co_await bench.start();
    const auto sandbox = co_await bench.sandbox();
    const auto running = bench.queue(sandbox, "hang");
    co_await Bench::start_of(running);
    for (size_t i = 0; i < limits::kRunQueueMax; ++i) (void)bench.queue(sandbox, "print x");
    const auto refused = bench.engine().runs().start(sandbox, RunSpec{.code = "print y"});
    EXPECT_FALSE(refused);
    EXPECT_EQ(refused.error().kind, ErrorKind::ResourceExhausted);
    co_await bench.stop();
    EXPECT_EQ(reason_of(*running), "cancelled");
    EXPECT_EQ(bench.engine().runs().active(), 0U);
}
TEST(Engine, AFullQueueRefusesAndShutDownEndsEveryRun) {
    on_loop(full_queue);
}

Task<void> interrupts(Checks&) {
    Bench bench;
    co_await bench.start();
    const auto sandbox = co_await bench.sandbox();
    const auto running = bench.queue(sandbox, "hang");
    const auto waiting = bench.queue(sandbox, "print never");
    co_await Bench::start_of(running);
    const auto context = sandbox->context("python");
    co_await Context::stop(context, waiting, EndReason::Interrupted);
    EXPECT_EQ(reason_of(*waiting), "interrupted");
    EXPECT_EQ(running->state(), RunState::Running);
    co_await Context::stop(context, running, EndReason::Interrupted);
    co_await Bench::end_of(running);
    EXPECT_EQ(reason_of(*running), "interrupted");
    const auto next = bench.queue(sandbox, "print next");
    co_await Bench::end_of(next);
    EXPECT_EQ(bench.agent_of(*sandbox).ran, (std::vector<std::string>{"hang", "print next"}));
    co_await bench.stop();
}
TEST(Engine, AnInterruptReachesQueuedAndRunningRuns) {
    on_loop(interrupts);
}

Task<void> early_interrupt(Checks&) {
    Bench bench;
    co_await bench.start();
    const auto sandbox = co_await bench.sandbox();
    const auto run = bench.queue(sandbox, "hang");
    co_await sleep_for(std::chrono::milliseconds(1));
    co_await Context::stop(sandbox->context("python"), run, EndReason::Interrupted);
    co_await Bench::end_of(run);
    EXPECT_EQ(reason_of(*run), "interrupted");
    co_await bench.stop();
}
TEST(Engine, AnInterruptThatOvertakesTheStartIsNotLost) {
    on_loop(early_interrupt);
}

Task<void> kernel_death(Checks&) {
    Bench bench;
    co_await bench.start();
    const auto sandbox = co_await bench.sandbox();
    const auto dying = bench.queue(sandbox, "die");
    co_await Bench::end_of(dying);
    EXPECT_EQ(reason_of(*dying), "kernel_died");
    const auto next = bench.queue(sandbox, "print again");
    co_await Bench::end_of(next);
    EXPECT_EQ(stdout_of(*next), "again");
    EXPECT_EQ(bench.agent_of(*sandbox).prepared, 2U);
    EXPECT_FALSE(next->end_value().state_lost);
    co_await bench.stop();
}
TEST(Engine, ALostInterpreterIsReplacedForTheNextRun) {
    on_loop(kernel_death);
}

Task<void> files_first(Checks&) {
    Bench bench;
    co_await bench.start();
    const auto sandbox = co_await bench.sandbox();
    RunSpec spec{.code = "print x"};
    spec.files = {{.path = "a.txt", .bytes = std::string(200'000, 'a')},
                  {.path = "empty", .bytes = ""}};
    co_await Bench::end_of(bench.queue(sandbox, std::move(spec)));
    EXPECT_EQ(bench.agent_of(*sandbox).files.at("a.txt").size(), 200'000U);
    EXPECT_EQ(bench.agent_of(*sandbox).files.at("empty"), "");
    RunSpec bad{.code = "print y"};
    bad.files = {{.path = "/forbidden", .bytes = "x"}};
    const auto refused = bench.queue(sandbox, std::move(bad));
    co_await Bench::end_of(refused);
    EXPECT_EQ(reason_of(*refused), "error");
    EXPECT_NE(refused->end_value().message.find("/forbidden"), std::string::npos);
    EXPECT_EQ(bench.agent_of(*sandbox).ran.size(), 1U);
    co_await bench.stop();
}
TEST(Engine, InlineFilesComeBeforeTheRunAndTheirFailureEndsIt) {
    on_loop(files_first);
}

Task<void> stdin_forms(Checks&) {
    Bench bench;
    co_await bench.start();
    const auto sandbox = co_await bench.sandbox();
    RunSpec text{.code = "cat"};
    text.stdin_mode = StdinMode::Text;
    text.stdin_text = std::string(300'000, 's');
    const auto whole = bench.queue(sandbox, std::move(text));
    co_await Bench::end_of(whole);
    EXPECT_EQ(stdout_of(*whole).size(), 300'000U);
    RunSpec calls{.code = "cat"};
    calls.stdin_mode = StdinMode::Calls;
    const auto open = bench.queue(sandbox, std::move(calls));
    EXPECT_TRUE(co_await open->input()->write("one ", StdinEnd::No));
    EXPECT_TRUE(co_await open->input()->write("two", StdinEnd::Yes));
    const auto late = co_await open->input()->write("three", StdinEnd::No);
    EXPECT_EQ(late.error().kind, ErrorKind::FailedPrecondition);
    co_await Bench::end_of(open);
    EXPECT_EQ(stdout_of(*open), "one two");
    co_await bench.stop();
}
TEST(Engine, StdinComesAsTextOrByCalls) {
    on_loop(stdin_forms);
}

Task<void> much_output(Checks&) {
    Bench bench;
    co_await bench.start();
    const auto sandbox = co_await bench.sandbox();
    const auto run = bench.queue(sandbox, "flood 320");
    co_await Bench::end_of(run);
    const json::object record = run->to_json(Detail::Whole);
    const json::object& out = record.at("stdout").as_object();
    EXPECT_EQ(out.at("bytes").as_uint64(), 320U * limits::kStreamChunk);
    EXPECT_LE(out.at("text").as_string().size(), limits::kInlineOutputMax);
    EXPECT_LE(run->log()->bytes(), limits::kRunEventsMax);
    const std::vector<Event> events = all_events(*run);
    EXPECT_EQ(events.front().type, "dropped");
    EXPECT_EQ(events.back().type, "ended");
    co_await bench.stop();
}
TEST(Engine, MuchOutputIsBoundedInMemory) {
    on_loop(much_output);
}

// --- Sandboxes that go away ---

Task<void> deleting(Checks&) {
    Bench bench;
    co_await bench.start();
    const auto sandbox = co_await bench.sandbox();
    const auto running = bench.queue(sandbox, "hang");
    const auto waiting = bench.queue(sandbox, "print x");
    co_await Bench::start_of(running);
    co_await Sandboxes::destroy(bench.engine().shared_sandboxes(), sandbox,
                                {.reason = EndReason::Cancelled, .message = "deleted"});
    EXPECT_EQ(reason_of(*running), "cancelled");
    EXPECT_EQ(reason_of(*waiting), "cancelled");
    EXPECT_TRUE(bench.warden()->agents.empty());
    EXPECT_EQ(bench.engine().sandboxes().find_running(bench.project(), sandbox->id()).error().kind,
              ErrorKind::NotFound);
    EXPECT_EQ(bench.engine().sandboxes().describe(bench.project(), sandbox->id())->state,
              SandboxState::Dead);
    EXPECT_FALSE(bench.engine().sandboxes().describe("other", sandbox->id()));
    co_await bench.stop();
}
TEST(Engine, DeletingASandboxCancelsItsRuns) {
    on_loop(deleting);
}

Task<void> losing(Checks&) {
    Bench bench;
    co_await bench.start();
    for (const char* code : {"vanish partial", "garbage"}) {
        const auto sandbox = co_await bench.sandbox();
        const auto run = bench.queue(sandbox, code);
        co_await Bench::end_of(run);
        EXPECT_EQ(reason_of(*run), "sandbox_lost") << code;
        EXPECT_TRUE(run->end_value().state_lost);
        if (code[0] == 'v') EXPECT_EQ(stdout_of(*run), "partial");
        EXPECT_TRUE(sandbox->death().has_value());
    }
    co_await bench.stop();
    EXPECT_TRUE(bench.warden()->agents.empty());
}
TEST(Engine, ABrokenConnectionIsALostSandboxWithItsOutput) {
    on_loop(losing);
}

Task<void> ended_event_of_warden(Checks& checks) {
    Bench bench;
    co_await bench.start();
    const auto sandbox = co_await bench.sandbox();
    const auto run = bench.queue(sandbox, "hang");
    co_await Bench::start_of(run);
    co_await bench.warden()->report_ended(sandbox->id());
    co_await Bench::end_of(run);
    EXPECT_EQ(reason_of(*run), "sandbox_lost");
    co_await checks.settle();
    EXPECT_EQ(bench.engine().sandboxes().live(), 0U);
    co_await bench.stop();
}
TEST(Engine, TheWardensWordEndsASandbox) {
    on_loop(ended_event_of_warden);
}

Task<void> warden_restart(Checks& checks) {
    Bench bench;
    co_await bench.start();
    const auto sandbox = co_await bench.sandbox();
    bench.warden()->break_off();
    // A stranger that only the new warden knows: nobody asked for it.
    const std::string stranger = new_id();
    bench.warden()->agents[stranger] =
        FakeAgent::start(layout::agent_socket(bench.data(), stranger));
    for (int i = 0; i < 50 && !sandbox->death(); ++i) co_await checks.settle();
    EXPECT_TRUE(sandbox->death().has_value());
    for (int i = 0; i < 50 && !bench.warden()->agents.empty(); ++i) co_await checks.settle();
    EXPECT_TRUE(bench.warden()->agents.empty());
    const auto fresh = co_await bench.sandbox();
    EXPECT_EQ(fresh->state(), SandboxState::Running);
    co_await bench.stop();
}
TEST(Engine, ANewWardenIsReconciledWith) {
    on_loop(warden_restart);
}

Task<void> failing_create(Checks& checks) {
    Bench bench;
    co_await bench.start();
    bench.warden()->refuses = true;
    const auto made = co_await bench.engine().sandboxes().create(bench.project(), {});
    EXPECT_EQ(made.error().kind, ErrorKind::ResourceExhausted);
    co_await checks.settle();
    EXPECT_EQ(bench.engine().sandboxes().live(), 0U);
    SandboxSpec strange{.template_name = "windows"};
    const auto unknown = co_await bench.engine().sandboxes().create(bench.project(), strange);
    EXPECT_EQ(unknown.error().field, "template");
    co_await bench.stop();
}
TEST(Engine, AFailedCreateLeavesNothing) {
    on_loop(failing_create);
}

Task<void> idleness(Checks& checks) {
    Bench bench;
    co_await bench.start();
    SandboxSpec spec{.idle_timeout_seconds = 1};
    const auto idle = co_await bench.sandbox(spec);
    const auto busy = co_await bench.sandbox(spec);
    const auto run = bench.queue(busy, "hang");
    const int64_t give_up = steady_ms() + 5'000;
    while (!idle->death() && steady_ms() < give_up) co_await checks.settle();
    EXPECT_TRUE(idle->death().has_value());
    EXPECT_FALSE(busy->death().has_value());
    EXPECT_FALSE(run->ended());
    co_await bench.stop();
}
TEST(Engine, AnIdleSandboxIsKilledABusyOneIsNot) {
    on_loop(idleness);
}

Task<void> guard(Checks&) {
    Bench bench;
    co_await bench.start();
    const auto sandbox = co_await bench.sandbox();
    RunSpec spec{.code = "deaf"};
    spec.timeout_ms = 1;
    const auto run = bench.queue(sandbox, std::move(spec));
    const int64_t begun = steady_ms();
    co_await Bench::end_of(run);
    EXPECT_EQ(reason_of(*run), "sandbox_lost");
    EXPECT_LT(steady_ms() - begun, 12'000);
    EXPECT_TRUE(bench.warden()->agents.empty());
    co_await bench.stop();
}
TEST(Engine, ASandboxThatDoesNotEndItsRunIsKilled) {
    on_loop(guard);
}

// --- Narrowed limits ---

Task<void> narrowed_run(Checks& checks) {
    Bench bench;
    co_await bench.start();
    const auto sandbox = co_await bench.sandbox();
    RunSpec spec{.code = "print x"};
    spec.narrowed = {.memory_max = 64 << 20, .pids_max = 9};
    co_await Bench::end_of(bench.queue(sandbox, spec));
    for (int i = 0; i < 100 && bench.warden()->narrowed.size() < 2; ++i) co_await checks.settle();
    const auto& asked = bench.warden()->narrowed;
    EXPECT_EQ(asked.size(), 2U);
    EXPECT_EQ(asked.at(0).memory_max, 64U << 20);
    EXPECT_EQ(asked.at(0).pids_max, 9U);
    EXPECT_EQ(asked.at(1).memory_max, 0U) << "put back";
    EXPECT_EQ(asked.at(1).pids_max, 0U);
    co_await Bench::end_of(bench.queue(sandbox, "print y"));
    EXPECT_EQ(asked.size(), 2U) << "a run that narrows nothing asks for nothing";
    co_await bench.stop();
}
TEST(Engine, ANarrowedRunPutsTheLimitsBack) {
    on_loop(narrowed_run);
}

Task<void> refused_narrowing(Checks&) {
    Bench bench;
    co_await bench.start();
    bench.warden()->memory_in_use = 500 << 20;
    const auto sandbox = co_await bench.sandbox();
    RunSpec spec{.code = "print x"};
    spec.narrowed = {.memory_max = 64 << 20};
    const auto run = bench.queue(sandbox, spec);
    co_await Bench::end_of(run);
    EXPECT_EQ(reason_of(*run), "error");
    EXPECT_EQ(run->end_value().message, "the run did not begin: it uses more");
    EXPECT_TRUE(bench.agent_of(*sandbox).ran.empty());
    const auto next = bench.queue(sandbox, "print y");
    co_await Bench::end_of(next);
    EXPECT_EQ(reason_of(*next), "ok");
    co_await bench.stop();
}
TEST(Engine, ARunThatCannotBeNarrowedDoesNotBegin) {
    on_loop(refused_narrowing);
}

Task<void> smallest_holds(Checks&) {
    Bench bench;
    co_await bench.start();
    const auto sandbox = co_await bench.sandbox();
    const auto& narrowing = sandbox->narrowing();
    EXPECT_TRUE(co_await narrowing->hold("a", {.memory_max = 100 << 20, .pids_max = 9}));
    EXPECT_TRUE(co_await narrowing->hold("b", {.memory_max = 200 << 20}));
    EXPECT_TRUE(co_await narrowing->hold("c", {.memory_max = 50 << 20}));
    co_await narrowing->release("a");
    co_await narrowing->repeat();
    co_await narrowing->release("c");
    std::vector<std::pair<uint64_t, uint32_t>> seen;
    for (const auto& asked : bench.warden()->narrowed)
        seen.emplace_back(asked.memory_max >> 20, asked.pids_max);
    const std::vector<std::pair<uint64_t, uint32_t>> wanted = {{100, 9}, {100, 9}, {50, 9},
                                                               {50, 0},  {50, 0},  {200, 0}};
    EXPECT_EQ(seen, wanted);
    co_await bench.stop();
}
TEST(Engine, TheSmallestOfSeveralNarrowingsHolds) {
    on_loop(smallest_holds);
}

Task<void> disk_figure(Checks&) {
    Bench bench;
    co_await bench.start();
    const auto sandbox = co_await bench.sandbox();
    const auto early = bench.queue(sandbox, "print x");
    co_await Bench::end_of(early);
    EXPECT_FALSE(early->to_json(Detail::Whole).at("metrics").as_object().contains("disk_bytes"));
    const auto run = bench.queue(sandbox, "hang");
    co_await Bench::start_of(run);
    bench.engine().sandboxes().watch();
    while (!sandbox->disk()) co_await sleep_for(std::chrono::milliseconds(1));
    co_await Context::stop(sandbox->context("python"), run, EndReason::Interrupted);
    co_await Bench::end_of(run);
    const json::object metrics = run->to_json(Detail::Whole).at("metrics").as_object();
    EXPECT_EQ(metrics.at("disk_bytes").as_uint64(), 4711U);
    EXPECT_GE(metrics.at("disk_age_ms").as_int64(), 0);
    co_await bench.stop();
}
TEST(Engine, ARunTellsWhatTheDiskHeldWhenSomebodyLooked) {
    on_loop(disk_figure);
}

// --- One-call runs, artifacts, restarts ---

Task<void> one_call(Checks& checks) {
    Bench bench;
    co_await bench.start();
    RunSpec spec{.code = "file /home/user/made.txt"};
    spec.files = {{.path = "/home/user/made.txt", .bytes = "kept bytes"}};
    const auto call = co_await start_one_call(bench.engine().one_call_parts(), bench.project(), {},
                                              std::move(spec));
    EXPECT_TRUE(call);
    const std::shared_ptr<Run> run = call->run;
    co_await Bench::end_of(run);
    co_await call->sandbox->wait_for_death();
    for (int i = 0; i < 100 && bench.engine().sandboxes().live() > 0; ++i) co_await checks.settle();
    EXPECT_TRUE(bench.warden()->agents.empty());
    auto file = co_await bench.engine().artifacts().open(run->id(), 0);
    EXPECT_TRUE(file);
    EXPECT_EQ(file->size, 10U);
    EXPECT_EQ(*co_await file->next(), "kept bytes");
    EXPECT_EQ(*co_await file->next(), "");
    EXPECT_FALSE(co_await bench.engine().artifacts().open(run->id(), 1));
    EXPECT_EQ(run->to_json(Detail::Whole).at("artifacts").as_array().size(), 1U);
    co_await bench.stop();
}
TEST(Engine, AOneCallRunKeepsItsArtifactsAndNothingElse) {
    on_loop(one_call);
}

Task<void> restart(Checks&) {
    const DataDirectory data;
    std::string sandbox_id, run_id, ended_id, project;
    {
        const auto warden = FakeWarden::start(data.path());
        const auto first = *Engine::create(data.path());
        first->start();
        while (!first->warden().base_template()) co_await sleep_for(std::chrono::milliseconds(1));
        project = first->local_project();
        const auto sandbox = *co_await first->sandboxes().create(project, {});
        const auto ended = *first->runs().start(sandbox, RunSpec{.code = "print kept"});
        co_await Bench::end_of(ended);
        const auto run = *first->runs().start(sandbox, RunSpec{.code = "hang"});
        co_await Bench::start_of(run);
        std::tie(sandbox_id, run_id, ended_id) = std::tuple(sandbox->id(), run->id(), ended->id());
        // As after kill -9: a second engine opens what the first one left in the database.
        const auto second = *Engine::create(data.path());
        EXPECT_EQ(second->local_project(), project);
        const auto lost = second->runs().record(project, run_id);
        EXPECT_EQ(lost->at("end_reason").as_string(), "sandbox_lost");
        EXPECT_EQ(lost->at("state").as_string(), "ended");
        const auto kept = second->runs().record(project, ended_id);
        EXPECT_EQ(kept->at("stdout").as_object().at("text").as_string(), "kept");
        EXPECT_EQ(json::serialize(*kept), json::serialize(ended->to_json(Detail::Whole)));
        EXPECT_EQ(second->sandboxes().describe(project, sandbox_id)->state, SandboxState::Dead);
        EXPECT_EQ(second->runs().record("other", run_id).error().kind, ErrorKind::NotFound);
        co_await first->shut_down();
        warden->stop();
    }
    co_await sleep_for(std::chrono::milliseconds(10));
}
TEST(Engine, ANewServerSettlesWhatTheOldOneLeft) {
    on_loop(restart);
}

Task<void> old_runs(Checks&) {
    Bench bench;
    co_await bench.start();
    const auto sandbox = co_await bench.sandbox();
    const auto first = bench.queue(sandbox, "print first");
    for (size_t i = 0; i < limits::kFinishedRunsInMemory; ++i) {
        co_await Bench::end_of(bench.queue(sandbox, "print x"));
    }
    EXPECT_EQ(bench.engine().runs().find(bench.project(), first->id()), nullptr);
    const auto record = bench.engine().runs().record(bench.project(), first->id());
    EXPECT_EQ(record->at("stdout").as_object().at("text").as_string(), "first");
    co_await bench.stop();
}
TEST(Engine, OldRunsAreAnsweredFromTheStore) {
    on_loop(old_runs);
}

}  // namespace
}  // namespace cloister::engine
