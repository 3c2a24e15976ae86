#include "programs/agent/outcome.h"

#include <gtest/gtest.h>

#include <cerrno>

namespace cloister::agent {
namespace {

RunFacts replied(int exit_code) {
    RunFacts facts;
    facts.reply_exit_code = exit_code;
    return facts;
}

RunFacts killed_by(int signal) {
    RunFacts facts;
    facts.died = true;
    facts.signal = signal;
    return facts;
}

TEST(Outcome, OfARunThatEndedByItself) {
    EXPECT_EQ(outcome_of(replied(0)).reason, EndReason::Ok);
    EXPECT_TRUE(outcome_of(replied(0)).message.empty());
    EXPECT_EQ(outcome_of(replied(3)).reason, EndReason::Error);
    EXPECT_EQ(outcome_of(replied(3)).exit_code, 3);
    EXPECT_FALSE(outcome_of(replied(3)).state_lost);
}

TEST(Outcome, OfADeadInterpreter) {
    const RunEnd crashed = outcome_of(killed_by(11));
    EXPECT_EQ(crashed.reason, EndReason::KernelDied);
    EXPECT_EQ(crashed.exit_code, 139);
    EXPECT_TRUE(crashed.state_lost);
    EXPECT_NE(crashed.message.find("signal 11"), std::string::npos);
    RunFacts left = killed_by(0);
    left.exit_code = 0;
    EXPECT_EQ(outcome_of(left).reason, EndReason::KernelDied);
    EXPECT_EQ(outcome_of(left).exit_code, 0);
}

TEST(Outcome, ALimitIsTheReasonOnlyOfARunThatFailed) {
    RunFacts fine = replied(0);
    fine.used.oom_kills = 1;
    fine.used.pids_max_hits = 7;
    EXPECT_EQ(outcome_of(fine).reason, EndReason::Ok);
    EXPECT_EQ(outcome_of(fine).limits_hit, (std::vector<std::string>{"memory", "pids"}));
    RunFacts failed = fine;
    failed.reply_exit_code = 1;
    EXPECT_EQ(outcome_of(failed).reason, EndReason::Oom);
    failed.used.oom_kills = 0;
    EXPECT_EQ(outcome_of(failed).reason, EndReason::PidsLimit);
}

TEST(Outcome, FollowsThePrecedence) {
    RunFacts facts = killed_by(9);
    facts.output_exceeded = true;
    facts.stopped = StopCause::OutputLimit;
    EXPECT_EQ(outcome_of(facts).reason, EndReason::OutputLimit);
    facts.stopped = weightier(facts.stopped, StopCause::Interrupted);
    EXPECT_EQ(outcome_of(facts).reason, EndReason::Interrupted);
    facts.stopped = weightier(StopCause::Cancelled, facts.stopped);
    EXPECT_EQ(outcome_of(facts).reason, EndReason::Cancelled);
    facts.stopped = weightier(facts.stopped, StopCause::Timeout);
    EXPECT_EQ(outcome_of(facts).reason, EndReason::Timeout);
    EXPECT_EQ(outcome_of(facts).limits_hit, (std::vector<std::string>{"timeout", "output"}));
    facts.used.oom_kills = 1;
    EXPECT_EQ(outcome_of(facts).reason, EndReason::Oom);
}

TEST(Outcome, ARunThatWasStoppedDidNotEndByItself) {
    RunFacts facts = replied(0);  // it caught the interrupt and finished
    facts.stopped = StopCause::Timeout;
    facts.limits.timeout_ms = 2000;
    EXPECT_EQ(outcome_of(facts).reason, EndReason::Timeout);
    EXPECT_TRUE(outcome_of(facts).message.starts_with("it ran longer than 2000 ms"));
    EXPECT_EQ(outcome_of(facts).limit->name, "timeout_ms");
    EXPECT_EQ(outcome_of(facts).limit->value, 2000U);
    EXPECT_FALSE(outcome_of(facts).state_lost);
}

TEST(Outcome, AnInterpreterThatWeKilledDidNotDieByItself) {
    RunFacts facts = killed_by(9);
    facts.stopped = StopCause::CpuLimit;
    facts.limits.cpu_time_ms = 500;
    const RunEnd end = outcome_of(facts);
    EXPECT_EQ(end.reason, EndReason::CpuLimit);
    EXPECT_EQ(end.limit->name, "cpu_time_ms");
    EXPECT_EQ(end.limit->value, 500U);
    EXPECT_EQ(end.limits_hit, (std::vector<std::string>{"cpu_time"}));
    EXPECT_TRUE(end.state_lost);
    EXPECT_TRUE(end.message.ends_with("the next run begins with a fresh interpreter"));
}

TEST(Outcome, AFullDiskIsToldByItsError) {
    RunFacts facts = replied(1);
    facts.limits.disk_max = 77;
    facts.disk_error = EDQUOT;
    EXPECT_EQ(outcome_of(facts).reason, EndReason::DiskFull);
    EXPECT_EQ(outcome_of(facts).limit->name, "disk_bytes");
    EXPECT_EQ(outcome_of(facts).limit->value, 77U);
    EXPECT_EQ(outcome_of(facts).limits_hit, (std::vector<std::string>{"disk"}));
    facts.disk_error = ENOSPC;
    EXPECT_EQ(outcome_of(facts).reason, EndReason::DiskFull);
    EXPECT_FALSE(outcome_of(facts).limit) << "it may have been /dev/shm";
    facts.reply_exit_code = 0;
    EXPECT_EQ(outcome_of(facts).reason, EndReason::Ok);
}

TEST(Outcome, EveryReasonThatIsNoSuccessSaysWhatCanBeDone) {
    std::vector<RunFacts> all = {replied(1), killed_by(11)};
    for (const StopCause cause : {StopCause::Timeout, StopCause::Cancelled, StopCause::Interrupted,
                                  StopCause::OutputLimit, StopCause::CpuLimit}) {
        all.push_back(replied(1));
        all.back().stopped = cause;
    }
    all.push_back(replied(1));
    all.back().used.oom_kills = 1;
    all.push_back(replied(1));
    all.back().used.pids_max_hits = 1;
    for (const RunFacts& facts : all) {
        const RunEnd end = outcome_of(facts);
        EXPECT_GT(end.message.size(), 30U) << to_string(end.reason);
        EXPECT_TRUE(end.message.contains(':') || end.message.contains(';')) << end.message;
    }
}

}  // namespace
}  // namespace cloister::agent
