#include "core/run/deterministic_mode.h"

#include <gmock/gmock.h>

namespace assay::run {
namespace {

using testing::HasSubstr;

std::string refusal(const std::map<std::string, std::string>& variables, const std::string& options = "") {
  const Status status = check_deterministic_mode(variables, options);
  return status.ok() ? "ok" : status.message();
}

TEST(DeterministicMode, AdmitsWhatMegatronsTestsSetAndNothingAtAll) {
  EXPECT_EQ(refusal({}), "ok");
  EXPECT_EQ(
      refusal(
          {{"NCCL_ALGO", "Ring"}, {"NVTE_ALLOW_NONDETERMINISTIC_ALGO", "0"}, {"CUBLAS_WORKSPACE_CONFIG", ":4096:8"}}),
      "ok");
  EXPECT_EQ(refusal({{"NCCL_ALGO", "CollnetDirect,^NVLS"}, {"CUBLAS_WORKSPACE_CONFIG", ":16:8"}}), "ok");
}

TEST(DeterministicMode, NamesTheVariableThatAllowsOtherResults) {
  EXPECT_THAT(refusal({{"NCCL_ALGO", "Tree"}}), HasSubstr("NCCL_ALGO is 'Tree', expected Ring or CollnetDirect"));
  EXPECT_THAT(refusal({{"NCCL_ALGO", "Ring,Tree"}}), HasSubstr("NCCL_ALGO is 'Ring,Tree'"));
  EXPECT_THAT(refusal({{"NCCL_ALGO", ""}}), HasSubstr("NCCL_ALGO is ''"));
  EXPECT_THAT(refusal({{"NVTE_ALLOW_NONDETERMINISTIC_ALGO", "1"}}), HasSubstr("is '1', expected 0;"));
  EXPECT_THAT(refusal({{"CUBLAS_WORKSPACE_CONFIG", ":0:0"}}), HasSubstr("is ':0:0', expected :4096:8 or :16:8"));
}

TEST(DeterministicMode, RefusesABackendOptionThatGivesUpALevel) {
  EXPECT_THAT(refusal({}, R"({"prefill": "fast"})"), HasSubstr("prefill is 'fast'"));
  EXPECT_EQ(refusal({}, R"({"threads": 2})"), "ok");
}

}  // namespace
}  // namespace assay::run
