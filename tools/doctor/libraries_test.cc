// What doctor says of a Slurm, by the programs that are there.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "tools/doctor/doctor.h"

namespace assay::doctor {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

class Slurm : public ::testing::Test {
 protected:
  void TearDown() override { fs::remove_all(folder_); }

  // With these programs on PATH.
  Finding with(const std::vector<std::string>& programs) {
    fs::remove_all(folder_);
    fs::create_directories(folder_);
    for (const std::string& name : programs) {
      std::ofstream(folder_ / name) << "#!/bin/sh\n";
      fs::permissions(folder_ / name, fs::perms::owner_all);
    }
    DoctorInput input;
    input.environment["PATH"] = "/nonexistent:" + folder_.string();
    std::vector<Finding> findings;
    examine_libraries(input, &findings);
    for (const Finding& one : findings) {
      if (one.section == "slurm") return one;
    }
    return {};
  }

  const fs::path folder_ = fs::path(testing::TempDir()) / ("assay_doctor_" + std::to_string(::getpid()));
};

TEST_F(Slurm, NeedsWhatTheLauncherRunsAndCanDoWithoutAccounts) {
  const Finding whole = with({"sbatch", "scontrol", "squeue", "scancel", "sacct"});
  EXPECT_EQ(whole.state, State::kOk);
  EXPECT_THAT(whole.text, AllOf(HasSubstr("scontrol"), HasSubstr("and sacct")));
  const Finding without = with({"sbatch", "scontrol", "squeue", "scancel"});
  EXPECT_EQ(without.state, State::kOk) << without.text;
  EXPECT_THAT(without.text, HasSubstr("sacct is not"));
}

TEST_F(Slurm, WhatIsMissingIsNamed) {
  for (const char* absent : {"sbatch", "scontrol", "squeue", "scancel"}) {
    std::vector<std::string> programs = {"sbatch", "scontrol", "squeue", "scancel", "sacct"};
    std::erase(programs, absent);
    const Finding found = with(programs);
    EXPECT_EQ(found.state, State::kWarning) << absent;
    EXPECT_THAT(found.text, HasSubstr(std::string("missing: ") + absent + ";"));
    EXPECT_THAT(found.text, Not(HasSubstr("sacct")));
    EXPECT_FALSE(found.remedy.empty());
  }
  const Finding accounts = with({"sacct"});
  EXPECT_EQ(accounts.state, State::kWarning) << "half a Slurm is no machine without one";
}

TEST_F(Slurm, AMachineWithoutOneIsFine) {
  const Finding none = with({});
  EXPECT_EQ(none.state, State::kOk);
  EXPECT_THAT(none.text, HasSubstr("no Slurm machine"));
}

}  // namespace
}  // namespace assay::doctor
