#include "core/run/deterministic_mode.h"

#include <gmock/gmock.h>

#include "assay/plugin_abi.h"

namespace assay::run {
namespace {

using testing::HasSubstr;

std::string refusal(const std::map<std::string, std::string>& variables) {
  const Status status = check_deterministic_variables(variables);
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

TEST(DeterministicMode, NamesWhoDoesNotHoldWhichLevel) {
  const LevelClaim all{"engine buffered", ASSAY_CAP_L1 | ASSAY_CAP_L2 | ASSAY_CAP_L3 | ASSAY_CAP_BATCH, "x"};
  EXPECT_TRUE(check_levels({all}).ok());
  EXPECT_TRUE(check_levels({all, all}).ok());
  const Status one = check_levels({all, {"backend fast", ASSAY_CAP_L1, "leave prefill out"}});
  EXPECT_EQ(one.code(), StatusCode::kInvalid);
  EXPECT_EQ(one.message(),
            "--deterministic-mode: backend fast does not hold L2, L3 (it claims L1), expected L1, L2, L3; leave "
            "prefill out");
  EXPECT_THAT(check_levels({{"engine e", ASSAY_CAP_BATCH, ""}, all}).message(),
              HasSubstr("engine e does not hold L1, L2, L3 (it claims none)"));
  EXPECT_THAT(check_levels({{"engine e", ASSAY_CAP_L1 | ASSAY_CAP_L3, ""}}).message(), HasSubstr("not hold L2 (it"));
}

}  // namespace
}  // namespace assay::run
