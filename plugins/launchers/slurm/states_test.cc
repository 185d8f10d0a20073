#include "plugins/launchers/slurm/states.h"

#include <gmock/gmock.h>

namespace assay::launchers {
namespace {

using ::testing::HasSubstr;

TEST(SlurmStates, EachMeansOnePhase) {
  const auto phase = [](const char* name) { return state_of(name, "None", "0:0").phase; };
  for (const char* name : {"PENDING", "CONFIGURING", "REQUEUED"}) EXPECT_EQ(phase(name), ASSAY_TASK_WAITING) << name;
  for (const char* name : {"RUNNING", "COMPLETING", "SUSPENDED", "STOPPED", "SOMETHING_NEW"}) {
    EXPECT_EQ(phase(name), ASSAY_TASK_RUNNING) << name;
  }
  for (const char* name : {"COMPLETED", "FAILED", "OUT_OF_MEMORY"}) EXPECT_EQ(phase(name), ASSAY_TASK_EXITED) << name;
  for (const char* name : {"CANCELLED", "CANCELLED by 0", "CANCELLED+", "TIMEOUT", "DEADLINE", "NODE_FAIL", "BOOT_FAIL",
                           "PREEMPTED", "REVOKED", "SPECIAL_EXIT", "REQUEUE_HOLD"}) {
    EXPECT_EQ(phase(name), ASSAY_TASK_LOST) << name;
  }
}

TEST(SlurmStates, OnlyAFailedNodeIsWorthAnotherStart) {
  for (const char* name : {"NODE_FAIL", "BOOT_FAIL", "PREEMPTED"}) EXPECT_TRUE(state_of(name, "", "0:0").again) << name;
  for (const char* name : {"CANCELLED", "TIMEOUT", "DEADLINE"}) EXPECT_FALSE(state_of(name, "", "0:0").again) << name;
}

TEST(SlurmStates, HowAProcessEnded) {
  EXPECT_EQ(state_of("FAILED", "NonZeroExitCode", "3:0").exit_code, 3);
  EXPECT_EQ(state_of("FAILED", "RaisedSignal", "0:11").signal, 11);
  EXPECT_EQ(state_of("FAILED", "", "139:0").signal, 11);
  EXPECT_EQ(state_of("OUT_OF_MEMORY", "", "0:125").signal, 9);
  EXPECT_THAT(state_of("OUT_OF_MEMORY", "", "0:125").reason, HasSubstr("memory"));
  EXPECT_EQ(state_of("FAILED", "", "0:53").phase, ASSAY_TASK_LOST);
  EXPECT_THAT(state_of("FAILED", "", "0:53").reason, HasSubstr("output folder"));
}

TEST(SlurmStates, ATaskThatWouldWaitForEverIsLost) {
  EXPECT_EQ(state_of("PENDING", "Resources", "0:0").phase, ASSAY_TASK_WAITING);
  EXPECT_EQ(state_of("PENDING", "launch_failed_requeued_held", "0:0").phase, ASSAY_TASK_LOST);
  const State state = state_of("PENDING", "PartitionTimeLimit", "0:0");
  EXPECT_EQ(state.phase, ASSAY_TASK_LOST);
  EXPECT_THAT(state.reason, HasSubstr("PartitionTimeLimit"));
}

TEST(Scontrol, OneLineATaskOrSeveralThatWait) {
  const auto states = parse_scontrol(
      "JobId=2 ArrayJobId=1 ArrayTaskId=0 ArrayTaskThrottle=2 JobName=a UserId=root(0) JobState=FAILED "
      "Reason=NonZeroExitCode Restarts=0 ExitCode=2:0 NodeList=n[1-2] BatchHost=n1 WorkDir=/tmp/a JobState=x\n"
      "JobId=3 ArrayJobId=1 ArrayTaskId=1 JobName=a JobState=RUNNING Reason=None Restarts=2 ExitCode=0:0 NodeList=n2 \n"
      "JobId=1 ArrayJobId=1 ArrayTaskId=2-4,7%2 JobName=a JobState=PENDING Reason=JobArrayTaskLimit Restarts=0 "
      "NodeList=(null)\n");
  ASSERT_EQ(states.size(), 6u);
  EXPECT_EQ(states.at(0).exit_code, 2);
  EXPECT_EQ(states.at(0).where, "n1");
  EXPECT_EQ(states.at(1).phase, ASSAY_TASK_RUNNING);
  EXPECT_EQ(states.at(1).restarts, 2);
  EXPECT_EQ(states.at(1).where, "n2");
  EXPECT_EQ(states.at(7).reason, "JobArrayTaskLimit");
  EXPECT_EQ(states.at(7).where, "");
  EXPECT_TRUE(parse_scontrol("slurm_load_jobs error: Invalid job id specified\n").empty());
}

TEST(Sacct, OneLineATask) {
  const auto states =
      parse_sacct("5_0|COMPLETED|0:0|n1\n5_1|CANCELLED by 0|0:15|n2\n5_[2-3%1]|PENDING|0:0|None assigned\n");
  ASSERT_EQ(states.size(), 4u);
  EXPECT_EQ(states.at(0).phase, ASSAY_TASK_EXITED);
  EXPECT_EQ(states.at(0).where, "n1");
  EXPECT_EQ(states.at(1).phase, ASSAY_TASK_LOST);
  EXPECT_EQ(states.at(3).phase, ASSAY_TASK_WAITING);
  EXPECT_TRUE(parse_sacct("Slurm accounting storage is disabled\n").empty());
}

}  // namespace
}  // namespace assay::launchers
