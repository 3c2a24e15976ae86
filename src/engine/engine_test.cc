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
    const auto context = sandbox->default_context("python");
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

Task<void> contexts_of_their_own(Checks&) {
    Bench bench;
    co_await bench.start();
    const auto sandbox = co_await bench.sandbox();
    Contexts& contexts = bench.engine().contexts();
    const auto made = contexts.create(*sandbox, {.language = "bash", .cwd = "/tmp"});
    EXPECT_TRUE(made);
    EXPECT_EQ((*made)->state(), ContextState::Stopped);
    EXPECT_TRUE(co_await Context::start_interpreter(*made));
    EXPECT_EQ((*made)->state(), ContextState::Idle);
    const auto run = bench.queue(sandbox, RunSpec{.context_id = (*made)->id(), .code = "print x"});
    co_await Bench::end_of(run);
    EXPECT_EQ(run->to_json(Detail::Whole).at("language").as_string(), "bash");
    EXPECT_EQ(run->to_json(Detail::Whole).at("context_id").as_string(), (*made)->id());
    EXPECT_EQ(sandbox->default_context("python"), nullptr);
    RunSpec other{.language = "python", .context_id = (*made)->id(), .code = "print x"};
    EXPECT_EQ(bench.engine().runs().start(sandbox, other).error().field, "language");
    EXPECT_TRUE(contexts.forget(*sandbox, **made));
    EXPECT_EQ(Contexts::find(*sandbox, (*made)->id()).error().kind, ErrorKind::NotFound);
    const auto bad = contexts.create(*sandbox, {.cwd = "/forbidden"});
    EXPECT_FALSE(co_await Context::start_interpreter(*bad));
    EXPECT_EQ((*bad)->state(), ContextState::Stopped);
    co_await bench.stop();
}
TEST(Engine, ContextsAreMadeUsedAndForgotten) {
    on_loop(contexts_of_their_own);
}

Task<void> artifacts_of_two_runs(Checks&) {
    Bench bench;
    co_await bench.start();
    const auto sandbox = co_await bench.sandbox();
    std::vector<size_t> listed;
    for (const char* code : {"file /home/user/a", "file /home/user/a", "file /home/user/b"}) {
        const auto run = bench.queue(sandbox, code);
        co_await Bench::end_of(run);
        listed.push_back(run->end_value().artifacts.size());
    }
    EXPECT_EQ(listed, (std::vector<size_t>{1, 0, 1}));
    co_await bench.stop();
}
TEST(Engine, AFileThatIsAsTheRunBeforeListedItIsNotListedAgain) {
    on_loop(artifacts_of_two_runs);
}

Task<void> restarts_and_deletes(Checks&) {
    Bench bench;
    co_await bench.start();
    const auto sandbox = co_await bench.sandbox();
    const auto running = bench.queue(sandbox, "hang");
    const auto waiting = bench.queue(sandbox, "print after");
    co_await Bench::start_of(running);
    const auto context = sandbox->default_context("python");
    EXPECT_EQ(context->state(), ContextState::Busy);
    EXPECT_EQ(context->queued(), 1U);
    EXPECT_EQ(waiting->to_json(Detail::Whole).at("queue_position").as_uint64(), 1U);
    EXPECT_TRUE(co_await Context::restart(context));
    co_await Bench::end_of(running);
    EXPECT_EQ(reason_of(*running), "cancelled");
    co_await Bench::end_of(waiting);
    EXPECT_EQ(reason_of(*waiting), "ok");
    EXPECT_EQ(bench.agent_of(*sandbox).prepared, 2U);

    const auto last = bench.queue(sandbox, "hang");
    const auto never = bench.queue(sandbox, "print never");
    co_await Bench::start_of(last);
    EXPECT_TRUE(co_await Context::remove(context));
    co_await Bench::end_of(last);
    EXPECT_EQ(reason_of(*last), "cancelled");
    EXPECT_EQ(reason_of(*never), "cancelled");
    co_await bench.stop();
}
TEST(Engine, ARestartKeepsTheQueueADeleteDoesNot) {
    on_loop(restarts_and_deletes);
}

Task<void> early_interrupt(Checks&) {
    Bench bench;
    co_await bench.start();
    const auto sandbox = co_await bench.sandbox();
    const auto run = bench.queue(sandbox, "hang");
    co_await sleep_for(std::chrono::milliseconds(1));
    co_await Context::stop(sandbox->default_context("python"), run, EndReason::Interrupted);
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
    EXPECT_EQ(bench.engine().sandboxes().find_live(bench.project(), sandbox->id()).error().kind,
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
    SandboxSpec spec{.lifespan = {.idle_seconds = 1, .on_idle = AtEnd::Kill}};
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

// --- The pool ---

Task<std::shared_ptr<Sandbox>> brief(Bench& bench, Lifespan lifespan) {
    SandboxSpec spec{.lifespan = lifespan};
    co_return co_await bench.sandbox(spec);
}

template <class Condition>
Task<bool> within(int64_t most_ms, Condition condition) {
    const int64_t give_up = steady_ms() + most_ms;
    while (!condition() && steady_ms() < give_up) co_await sleep_for(std::chrono::milliseconds(2));
    co_return condition();
}

Task<void> pool_hit(Checks&) {
    Bench bench;
    bench.pool.target = 2;
    co_await bench.start();
    bench.warden()->has_zygote = true;
    Sandboxes& sandboxes = bench.engine().sandboxes();
    const auto first = co_await bench.sandbox();
    EXPECT_TRUE(co_await within(5'000, [&] { return sandboxes.pool_figures().ready == 2; }));
    EXPECT_EQ(sandboxes.live(), 1U);
    EXPECT_EQ(sandboxes.list(bench.project()).size(), 1U) << "nobody sees those of the pool";
    const auto second = co_await bench.sandbox();
    EXPECT_EQ(sandboxes.pool_figures().hits, 1U);
    EXPECT_EQ(sandboxes.pool_figures().misses, 1U);
    const auto run = bench.queue(second, "print 1");
    co_await Bench::end_of(run);
    EXPECT_EQ(stdout_of(*run), "1");
    EXPECT_EQ(bench.agent_of(*second).prepared, 1U) << "the interpreter of the pool";
    SandboxSpec other;
    other.env["A"] = "1";
    const auto third = co_await bench.sandbox(other);
    const auto with_env = bench.queue(third, "print 1");
    co_await Bench::end_of(with_env);
    EXPECT_EQ(bench.agent_of(*third).prepared, 2U) << "an environment needs one of its own";
    EXPECT_TRUE(co_await within(5'000, [&] { return sandboxes.pool_figures().ready == 2; }));
    const auto odd = co_await bench.sandbox({.memory_mb = 512});
    EXPECT_EQ(sandboxes.pool_figures().hits, 2U) << "another shape";
    EXPECT_NE(odd->id(), second->id());
    co_await bench.stop();
    EXPECT_TRUE(bench.warden()->agents.empty());
}
TEST(Engine, ACreateTakesASandboxOfThePool) {
    on_loop(pool_hit);
}

Task<void> pool_bounds(Checks&) {
    Bench bench;
    bench.pool = {.target = 4, .memory_bytes = 20 << 20};  // room for two of 8 MiB
    co_await bench.start();
    bench.warden()->has_zygote = true;
    Sandboxes& sandboxes = bench.engine().sandboxes();
    bench.warden()->memory_used = 8 << 20;
    (void)co_await bench.sandbox();
    const int64_t until = steady_ms() + 600;
    while (steady_ms() < until) {
        EXPECT_LE(sandboxes.pool_figures().memory_bytes, bench.pool.memory_bytes);
        co_await sleep_for(std::chrono::milliseconds(5));
    }
    EXPECT_EQ(sandboxes.pool_figures().ready, 1U) << "10 MiB each, with the agent";
    co_await bench.stop();
}
TEST(Engine, ThePoolStaysWithinItsBudget) {
    on_loop(pool_bounds);
}

Task<void> pool_members_that_end(Checks&) {
    Bench bench;
    bench.pool.target = 1;
    co_await bench.start();
    bench.warden()->has_zygote = true;
    Sandboxes& sandboxes = bench.engine().sandboxes();
    const auto sandbox = co_await bench.sandbox();
    EXPECT_TRUE(co_await within(5'000, [&] { return sandboxes.pool_figures().ready == 1; }));
    for (const auto& [id, agent] : bench.warden()->agents) {
        if (id == sandbox->id()) continue;
        co_await bench.warden()->report_ended(std::string(id));
        break;
    }
    EXPECT_TRUE(co_await within(5'000, [&] { return sandboxes.pool_figures().ready == 0; }));
    const auto next = co_await bench.sandbox();
    const auto run = bench.queue(next, "print 1");
    co_await Bench::end_of(run);
    EXPECT_EQ(reason_of(*run), "ok") << "it was not the dead one";
    EXPECT_TRUE(co_await within(5'000, [&] { return sandboxes.pool_figures().ready == 1; }));
    co_await bench.restart();  // no row names those of the pool
    EXPECT_TRUE(co_await within(5'000, [&] { return bench.warden()->agents.size() == 2; }));
    co_await bench.stop();
}
TEST(Engine, WhatEndsInThePoolIsNotGivenToAnybody) {
    on_loop(pool_members_that_end);
}

// --- Pause, resume, and the limits of a life ---

std::vector<std::string> events_of(const Sandbox& sandbox) {
    std::vector<std::string> types;
    for (const Event& event : sandbox.events()->attach(0).take(SIZE_MAX))
        types.emplace_back(event.type);
    return types;
}

Task<void> pausing(Checks&) {
    Bench bench;
    co_await bench.start();
    Sandboxes& sandboxes = bench.engine().sandboxes();
    const auto sandbox = co_await bench.sandbox();
    co_await Bench::end_of(bench.queue(sandbox, "print 1"));
    EXPECT_TRUE(co_await sandboxes.pause(sandbox, WhenBusy::Refuse));
    EXPECT_TRUE(co_await sandboxes.pause(sandbox, WhenBusy::Refuse)) << "it is paused already";
    EXPECT_EQ(sandbox->state(), SandboxState::Paused);
    EXPECT_TRUE(bench.warden()->frozen.contains(sandbox->id()));
    EXPECT_EQ(sandboxes.list(bench.project()).size(), 1U);
    {
        const auto awake = co_await sandboxes.awaken(bench.project(), sandbox->id());
        EXPECT_TRUE(awake);
        EXPECT_FALSE(bench.warden()->frozen.contains(sandbox->id()));
        EXPECT_EQ((co_await sandboxes.pause(sandbox, WhenBusy::Refuse)).error().kind,
                  ErrorKind::FailedPrecondition)
            << "a call goes on";
    }
    const auto run = bench.queue(sandbox, "print 2");
    co_await Bench::end_of(run);
    EXPECT_FALSE(run->end_value().state_lost);
    EXPECT_EQ(bench.agent_of(*sandbox).prepared, 1U) << "the same interpreter";
    EXPECT_TRUE(co_await sandboxes.pause(sandbox, WhenBusy::Wait));
    co_await Sandboxes::destroy(bench.engine().shared_sandboxes(), sandbox, {.why = "deleted"});
    EXPECT_EQ(events_of(*sandbox),
              (std::vector<std::string>{"created", "paused", "resumed", "paused", "ended"}));
    co_await bench.stop();
}
TEST(Engine, APausedSandboxGoesOnWithTheNextCall) {
    on_loop(pausing);
}

Task<void> pause_during_a_run(Checks& checks) {
    Bench bench;
    co_await bench.start();
    const auto sandbox = co_await bench.sandbox();
    const auto run = bench.queue(sandbox, "await 1");
    co_await Bench::start_of(run);
    EXPECT_EQ((co_await bench.engine().sandboxes().pause(sandbox, WhenBusy::Refuse)).error().kind,
              ErrorKind::FailedPrecondition);
    struct Waiting {
        bool done = false;
        static Task<void> go(Bench& bench, std::shared_ptr<Sandbox> sandbox, Waiting& waiting) {
            const auto paused = co_await bench.engine().sandboxes().pause(sandbox, WhenBusy::Wait);
            waiting.done = paused.has_value();
        }
    } waiting;
    spawn(Waiting::go(bench, sandbox, waiting));
    co_await checks.settle();
    EXPECT_EQ(sandbox->state(), SandboxState::Running);
    bench.agent_of(*sandbox).go();
    co_await Bench::end_of(run);
    EXPECT_TRUE(co_await within(5'000, [&] { return waiting.done; }));
    EXPECT_EQ(sandbox->state(), SandboxState::Paused);
    EXPECT_EQ(reason_of(*run), "ok");
    co_await bench.stop();
}
TEST(Engine, APauseDuringARunIsRefusedOrWaits) {
    on_loop(pause_during_a_run);
}

Task<void> pause_refused_by_host(Checks&) {
    Bench bench;
    co_await bench.start();
    bench.warden()->freezes = false;
    const auto sandbox = co_await bench.sandbox();
    EXPECT_EQ((co_await bench.engine().sandboxes().pause(sandbox, WhenBusy::Refuse)).error().kind,
              ErrorKind::Unimplemented);
    EXPECT_EQ(sandbox->state(), SandboxState::Running);
    const auto run = bench.queue(sandbox, "print still here");
    co_await Bench::end_of(run);
    EXPECT_EQ(stdout_of(*run), "still here");
    co_await bench.stop();
}
TEST(Engine, AHostThatCannotPauseSaysSoAndTheSandboxRunsOn) {
    on_loop(pause_refused_by_host);
}

Task<void> paused_over_a_restart(Checks&) {
    Bench bench;
    co_await bench.start();
    const auto sandbox = co_await bench.sandbox();
    co_await Bench::end_of(bench.queue(sandbox, "print 1"));
    EXPECT_TRUE(co_await bench.engine().sandboxes().pause(sandbox, WhenBusy::Refuse));
    co_await bench.restart();
    const auto again = bench.engine().sandboxes().find_live(bench.project(), sandbox->id());
    EXPECT_TRUE(again);
    EXPECT_EQ((*again)->state(), SandboxState::Paused);
    {
        const auto awake =
            co_await bench.engine().sandboxes().awaken(bench.project(), sandbox->id());
        EXPECT_TRUE(awake);
    }
    const auto run = bench.queue(*again, "print 2");
    co_await Bench::end_of(run);
    EXPECT_FALSE(run->end_value().state_lost);
    EXPECT_EQ(bench.agent_of(**again).prepared, 1U) << "the interpreter of before";
    co_await bench.stop();
}
TEST(Engine, ANewServerFindsAPausedSandboxPaused) {
    on_loop(paused_over_a_restart);
}

// After a reboot the warden has the files only.
Task<void> rebooted(Checks&) {
    Bench bench;
    co_await bench.start();
    const auto sandbox = co_await bench.sandbox();
    co_await Bench::end_of(bench.queue(sandbox, "print 1"));
    const auto cut = bench.queue(sandbox, "hang");
    co_await Bench::start_of(cut);
    bench.agent_of(*sandbox).die();
    bench.warden()->ended.insert(sandbox->id());
    co_await bench.restart(Bench::Reboot::Yes);
    for (int restarts = 0; restarts < 2; ++restarts) {  // the second one is none of the host
        const auto again = bench.engine().sandboxes().find_live(bench.project(), sandbox->id());
        EXPECT_TRUE(again);
        if (!again) co_return;
        EXPECT_EQ((*again)->state(), SandboxState::Paused);
        EXPECT_EQ(info_of(**again).lost, "host_reboot");
        if (restarts == 0) co_await bench.restart();
    }
    EXPECT_EQ(
        bench.engine().runs().record(bench.project(), cut->id())->at("end_reason").as_string(),
        "sandbox_lost");
    const auto awake = co_await bench.engine().sandboxes().awaken(bench.project(), sandbox->id());
    EXPECT_TRUE(awake) << awake.error().message;
    EXPECT_EQ(bench.warden()->revived, std::vector<std::string>{sandbox->id()});
    const auto first = bench.queue(awake->sandbox, "print 2");
    co_await Bench::end_of(first);
    const json::object record = first->to_json(Detail::Whole);
    EXPECT_TRUE(record.at("state_lost").as_bool());
    EXPECT_EQ(record.at("state_lost_reason").as_string(), "host_reboot");
    const auto second = bench.queue(awake->sandbox, "print 3");
    co_await Bench::end_of(second);
    EXPECT_FALSE(second->end_value().state_lost) << "it is said once";
    bench.warden()->ended.clear();
    co_await bench.stop();
}
TEST(Engine, AfterARebootASandboxIsPausedWithItsFilesAndSaysThatItsStateIsLost) {
    on_loop(rebooted);
}

Task<void> paused_at_the_end(Checks&) {
    Bench bench;
    co_await bench.start();
    const auto paused = co_await bench.sandbox();
    EXPECT_TRUE(co_await bench.engine().sandboxes().pause(paused, WhenBusy::Refuse));
    const auto running = co_await bench.sandbox();
    co_await bench.engine().shut_down();
    EXPECT_FALSE(bench.warden()->agents.contains(running->id()));
    EXPECT_TRUE(bench.warden()->agents.contains(paused->id())) << "the warden keeps its files";
    co_await bench.stop();
}
TEST(Engine, TheEndOfTheServiceLeavesPausedSandboxesTheirFiles) {
    on_loop(paused_at_the_end);
}

Task<void> idle_pause(Checks&) {
    Bench bench;
    co_await bench.start();
    const auto idle = co_await brief(bench, {.idle_seconds = 1});
    const auto at_work = co_await brief(bench, {.idle_seconds = 1});
    const auto run = bench.queue(at_work, "hang");
    EXPECT_TRUE(co_await within(5'000, [&] { return idle->state() == SandboxState::Paused; }));
    EXPECT_EQ(at_work->state(), SandboxState::Running) << "a run is longer than the limit";
    EXPECT_FALSE(run->ended());
    co_await bench.stop();
}
TEST(Engine, AnIdleSandboxIsPausedNotOneWithARun) {
    on_loop(idle_pause);
}

Task<void> working_processes(Checks&) {
    Bench bench;
    co_await bench.start();
    const auto sandbox = co_await brief(bench, {.idle_seconds = 1, .on_idle = AtEnd::Kill});
    const int64_t until = steady_ms() + 2'500;
    while (steady_ms() < until) {
        bench.warden()->cpu_ms += 20;  // of each 20 ms
        co_await sleep_for(std::chrono::milliseconds(20));
        EXPECT_FALSE(sandbox->death().has_value());
    }
    EXPECT_TRUE(co_await within(5'000, [&] { return sandbox->death().has_value(); }));
    EXPECT_EQ(sandbox->death()->why, "idle");
    co_await bench.stop();
}
TEST(Engine, ASandboxWhoseProcessesWorkIsNotIdle) {
    on_loop(working_processes);
}

Task<void> deadlines(Checks&) {
    Bench bench;
    co_await bench.start();
    Sandboxes& sandboxes = bench.engine().sandboxes();
    const auto killed = co_await brief(bench, {.deadline_ms = unix_ms() + 700});
    const auto moved = co_await brief(bench, {.deadline_ms = unix_ms() + 700});
    const auto stopped =
        co_await brief(bench, {.deadline_ms = unix_ms() + 700, .on_deadline = AtEnd::Pause});
    const auto paused = co_await brief(bench, {.deadline_ms = unix_ms() + 700});
    EXPECT_TRUE(co_await sandboxes.pause(paused, WhenBusy::Refuse));
    EXPECT_TRUE(sandboxes.set_lifespan(*moved, {.deadline_ms = unix_ms() + 60'000}));
    EXPECT_TRUE(co_await within(
        5'000, [&] { return killed->death() && stopped->state() == SandboxState::Paused; }));
    EXPECT_EQ(killed->death()->why, "deadline");
    const auto told = events_of(*killed);
    EXPECT_EQ(told, (std::vector<std::string>{"created", "ending_soon", "ended"}));
    EXPECT_FALSE(moved->death().has_value());
    EXPECT_FALSE(stopped->lifespan().deadline_ms) << "with the next call it goes on without one";
    EXPECT_EQ(paused->state(), SandboxState::Paused) << "a deadline does not run meanwhile";
    EXPECT_TRUE(co_await sandboxes.resume(paused));
    EXPECT_GT(*paused->lifespan().deadline_ms, unix_ms());
    EXPECT_TRUE(co_await within(5'000, [&] { return paused->death().has_value(); }));
    co_await bench.stop();
}
TEST(Engine, ADeadlineKillsOrPausesAndMovesEitherWay) {
    on_loop(deadlines);
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
    EXPECT_GE(steady_ms() - begun, kAgentSilenceMs);
    EXPECT_LT(steady_ms() - begun, 12'000);
    EXPECT_TRUE(bench.warden()->agents.empty());
    co_await bench.stop();
}
TEST(Engine, ASandboxThatDoesNotEndItsRunIsKilled) {
    on_loop(guard);
}

Task<void> patience(Checks&) {
    Bench bench;
    co_await bench.start();
    const auto sandbox = co_await bench.sandbox();
    RunSpec slow{.code = "stopping"}, stuck{.code = "stopping"};
    slow.timeout_ms = stuck.timeout_ms = 1;
    const auto late = bench.queue(sandbox, std::move(slow));
    co_await Bench::start_of(late);
    co_await sleep_for(std::chrono::milliseconds(kAgentSilenceMs + kAgentPatienceMs / 4));
    EXPECT_FALSE(late->ended()) << "its agent says that it is at work";
    bench.agent_of(*sandbox).go();
    co_await Bench::end_of(late);
    EXPECT_EQ(reason_of(*late), "ok");
    bench.agent_of(*sandbox).may_go = false;
    const auto never = bench.queue(sandbox, std::move(stuck));
    co_await Bench::end_of(never);
    EXPECT_EQ(reason_of(*never), "sandbox_lost") << "but not for ever";
    co_await bench.stop();
}
TEST(Engine, AnAgentThatIsStoppingARunGetsMoreTime) {
    on_loop(patience);
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
    co_await Context::stop(sandbox->default_context("python"), run, EndReason::Interrupted);
    co_await Bench::end_of(run);
    const json::object metrics = run->to_json(Detail::Whole).at("metrics").as_object();
    EXPECT_EQ(metrics.at("disk_bytes").as_uint64(), 4096U);
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

// --- A new server ---

std::string lines(size_t count) {
    std::string out;
    for (size_t i = 0; i < count; ++i) out += std::to_string(i) + "\n";
    return out;
}

Task<void> taken_over(Checks&) {
    Bench bench;
    co_await bench.start();
    const auto sandbox = co_await bench.sandbox({.env = {{"K", "V"}}, .metadata = {{"a", "b"}}});
    const auto ended = bench.queue(sandbox, "print kept");
    co_await Bench::end_of(ended);
    const auto run = bench.queue(sandbox, "await 1000");
    const auto waiting = bench.queue(sandbox, "print after");
    while (run->log()->last() < 1001) co_await run->log()->changed().wait();
    const std::vector<Event> before = all_events(*run);
    co_await bench.restart();

    Engine& engine = bench.engine();
    const auto again = engine.sandboxes().find_live(bench.project(), sandbox->id());
    EXPECT_TRUE(again);
    EXPECT_EQ((*again)->spec().env.at("K"), "V");
    EXPECT_EQ((*again)->spec().metadata.at("a"), "b");
    EXPECT_EQ((*again)->created_ms(), sandbox->created_ms());
    const auto same = engine.runs().find(bench.project(), run->id());
    EXPECT_TRUE(same);
    auto reader = same->log()->attach(500);  // of a client that had read so far
    bench.agent_of(*sandbox).go();
    co_await Bench::end_of(same);
    EXPECT_EQ(reason_of(*same), "ok");
    EXPECT_EQ(stdout_of(*same), lines(1000) + lines(1000));
    EXPECT_EQ(same->to_json(Detail::Whole).at("started_as").as_string(), "forked");
    const std::vector<Event> after = all_events(*same);
    for (size_t i = 1; i < before.size(); ++i) {  // `started` tells what the record says now
        EXPECT_EQ(after[i].number, before[i].number);
        EXPECT_EQ(after[i].data, before[i].data);
    }
    EXPECT_EQ(reader.take(SIZE_MAX).front().number, 501U);
    // What had waited was run, in the same interpreter.
    const auto later = engine.runs().find(bench.project(), waiting->id());
    co_await Bench::end_of(later);
    EXPECT_EQ(stdout_of(*later), "after");
    EXPECT_EQ(bench.agent_of(*sandbox).ran,
              (std::vector<std::string>{"print kept", "await 1000", "print after"}));
    EXPECT_EQ(bench.agent_of(*sandbox).prepared, 1U);
    const auto kept = engine.runs().record(bench.project(), ended->id());
    EXPECT_EQ(json::serialize(*kept), json::serialize(ended->to_json(Detail::Whole)));
    co_await bench.stop();
}
TEST(Engine, ANewServerGoesOnWithWhatTheOldOneLeft) {
    on_loop(taken_over);
}

Task<void> ended_in_the_gap(Checks& checks) {
    Bench bench;
    co_await bench.start();
    const auto sandbox = co_await bench.sandbox();
    const auto first = bench.queue(sandbox, "print known");
    co_await Bench::end_of(first);
    const auto run = bench.queue(sandbox, "await 10");
    while (run->log()->last() < 11) co_await run->log()->changed().wait();
    co_await bench.restart();
    bench.agent_of(*sandbox).go();
    const auto same = bench.engine().runs().find(bench.project(), run->id());
    co_await Bench::end_of(same);
    EXPECT_EQ(stdout_of(*same), lines(10) + lines(10));
    const FakeAgent& agent = bench.agent_of(*sandbox);
    EXPECT_FALSE(agent.runs.contains(first->id())) << "its end was stored";
    EXPECT_TRUE(agent.runs.contains(run->id()));
    co_await bench.restart();
    EXPECT_FALSE(bench.engine().runs().find(bench.project(), run->id())) << "it has ended";
    EXPECT_EQ(bench.engine().runs().active(), 0U);
    const auto record = bench.engine().runs().record(bench.project(), run->id());
    EXPECT_EQ(record->at("end_reason").as_string(), "ok");
    for (int i = 0; i < 50 && !agent.runs.empty(); ++i) co_await checks.settle();
    EXPECT_TRUE(agent.runs.empty()) << "its end was stored, too";
    co_await bench.stop();
}
TEST(Engine, ARunThatEndedIsNotTakenOverAgain) {
    on_loop(ended_in_the_gap);
}

Task<void> lost_while_away(Checks& checks) {
    Bench bench;
    co_await bench.start();
    const auto gone = co_await bench.sandbox();
    const auto mute = co_await bench.sandbox();
    const auto lost = bench.queue(gone, "hang");
    co_await Bench::start_of(lost);
    const auto unknown = bench.queue(mute, "hang");
    co_await Bench::start_of(unknown);
    bench.warden()->agents.erase(gone->id());
    bench.warden()->agents.at(mute->id())->die();  // the warden does not know it yet
    const std::string stranger = new_id();
    bench.warden()->agents[stranger] =
        FakeAgent::start(layout::agent_socket(bench.data(), stranger));
    co_await bench.restart();
    for (const auto& run : {lost, unknown}) {
        const auto record = bench.engine().runs().record(bench.project(), run->id());
        EXPECT_EQ(record->at("state").as_string(), "ended");
        EXPECT_EQ(record->at("end_reason").as_string(), "sandbox_lost");
        EXPECT_TRUE(record->at("state_lost").as_bool());
        EXPECT_NE(record->at("message").as_string().size(), 0U);
        EXPECT_EQ(bench.engine().sandboxes().describe(bench.project(), run->place().sandbox)->state,
                  SandboxState::Dead);
    }
    EXPECT_EQ(bench.engine().runs().record("other", lost->id()).error().kind, ErrorKind::NotFound);
    for (int i = 0; i < 50 && !bench.warden()->agents.empty(); ++i) co_await checks.settle();
    EXPECT_TRUE(bench.warden()->agents.empty()) << "also the one that no row knows";
    co_await bench.stop();
}
TEST(Engine, WhatIsGoneWhenANewServerComesIsLost) {
    on_loop(lost_while_away);
}

Task<void> being_taken_over(Checks& checks) {
    Bench bench;
    co_await bench.start();
    const auto sandbox = co_await bench.sandbox();
    bench.agent_of(*sandbox).mute = true;
    const int64_t begun = steady_ms();
    co_await bench.restart();
    EXPECT_LT(steady_ms() - begun, 5'000) << "one that does not answer does not keep clients out";
    const auto early = bench.engine().sandboxes().find_live(bench.project(), sandbox->id());
    EXPECT_EQ(early.error().kind, ErrorKind::Unavailable);
    const auto other = co_await bench.sandbox();
    co_await Bench::end_of(bench.queue(other, "print 1"));
    for (int i = 0; i < 600 && bench.engine().sandboxes().live() > 1; ++i) co_await checks.settle();
    EXPECT_EQ(bench.engine().sandboxes().find_live(bench.project(), sandbox->id()).error().kind,
              ErrorKind::NotFound);
    co_await bench.stop();
}
TEST(Engine, AnAgentThatDoesNotAnswerANewServerIsGivenUp) {
    on_loop(being_taken_over);
}

Task<void> one_call_over_restart(Checks& checks) {
    Bench bench;
    co_await bench.start();
    const auto call = co_await start_one_call(bench.engine().one_call_parts(), bench.project(), {},
                                              RunSpec{.code = "await 3"});
    EXPECT_TRUE(call);
    while (call->run->log()->last() < 4) co_await call->run->log()->changed().wait();
    co_await bench.restart();
    bench.agent_of(*call->sandbox).go();
    const auto same = bench.engine().runs().find(bench.project(), call->run->id());
    co_await Bench::end_of(same);
    EXPECT_EQ(stdout_of(*same), lines(3) + lines(3));
    for (int i = 0; i < 100 && bench.engine().sandboxes().live() > 0; ++i) co_await checks.settle();
    EXPECT_TRUE(bench.warden()->agents.empty());
    co_await bench.stop();
}
TEST(Engine, AOneCallSandboxDiesAfterItsRunAlsoOverARestart) {
    on_loop(one_call_over_restart);
}

Task<void> artifacts_over_restart(Checks& checks) {
    Bench bench;
    co_await bench.start();
    RunSpec spec{.code = "file /home/user/made.txt"};
    spec.files = {{.path = "/home/user/made.txt", .bytes = "kept bytes"}};
    // Killed between the end of the run and the copying of what it made.
    const auto sandbox = co_await bench.sandbox({.life = SandboxSpec::Life::OneRun});
    const auto run = bench.queue(sandbox, std::move(spec));
    co_await Bench::end_of(run);
    co_await bench.restart();
    for (int i = 0; i < 100 && bench.engine().sandboxes().live() > 0; ++i) co_await checks.settle();
    EXPECT_TRUE(bench.warden()->agents.empty());
    auto file = co_await bench.engine().artifacts().open(run->id(), 0);
    EXPECT_TRUE(file);
    EXPECT_EQ(*co_await file->next(), "kept bytes");
    co_await bench.stop();
}
TEST(Engine, ArtifactsOfAOneCallRunAreKeptOverARestart) {
    on_loop(artifacts_over_restart);
}

Task<void> stdin_over_restart(Checks&) {
    Bench bench;
    co_await bench.start();
    const auto sandbox = co_await bench.sandbox();
    RunSpec spec{.code = "await 1"};
    spec.stdin_mode = StdinMode::Text;
    spec.stdin_text = "abcdef";
    const auto run = bench.queue(sandbox, std::move(spec));
    co_await Bench::start_of(run);
    bench.agent_of(*sandbox).stdin_bytes = 4;
    co_await bench.restart();
    const auto same = bench.engine().runs().find(bench.project(), run->id());
    co_await Bench::start_of(same);
    bench.agent_of(*sandbox).go();
    co_await Bench::end_of(same);
    EXPECT_EQ(bench.agent_of(*sandbox).stdin_later, "ef");
    co_await bench.stop();
}
TEST(Engine, StdinGoesOnWhereItWas) {
    on_loop(stdin_over_restart);
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
