// What the system tests hand on to the programs that they start.
#include "tests/program.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

namespace assay::tests {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

TEST(EnvironmentOfTests, HoldsWhatIsHandedOnAlone) {
  const Output output = run_file(find_executable("env"), {});
  ASSERT_EQ(output.code, 0) << output.err;
  std::istringstream lines(output.out);
  for (std::string line; std::getline(lines, line);) {
    const std::string name = line.substr(0, line.find('='));
    EXPECT_TRUE(is_handed_on(name)) << name;
  }
  EXPECT_THAT(output.out, HasSubstr("PATH="));
}

// The test above, by the same program started among variables that cases and commands read.
TEST(EnvironmentOfTests, IsTheSameWhateverIsExported) {
  const Output output = run_file(
      find_executable("env"),
      {"CI=1", "ASSAY_PLUGIN_PATH=/nowhere", "CHECKPOINT_LOAD_PATH=/nowhere", "RANDOM_16B_CHECKPOINT=/nowhere",
       "NCCL_PROTO=Simple", "GPUS_PER_NODE=3", "N_REPEAT=2", "ASAN_OPTIONS=exitcode=99",
       fs::read_symlink("/proc/self/exe").string(), "--gtest_filter=EnvironmentOfTests.HoldsWhatIsHandedOnAlone"});
  EXPECT_EQ(output.code, 0) << output.out << output.err;
  EXPECT_THAT(output.out, HasSubstr("[  PASSED  ] 1 test."));
}

TEST(EnvironmentOfTests, HasWhatATestSetsItself) {
  ::setenv("OF_THIS_TEST", "yes", 1);
  const Output output = run_file(find_executable("env"), {});
  ::unsetenv("OF_THIS_TEST");
  EXPECT_THAT(output.out, HasSubstr("OF_THIS_TEST=yes"));
}

}  // namespace
}  // namespace assay::tests
