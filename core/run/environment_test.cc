#include "core/run/environment.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace assay::run {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(Environment, DifferencesAreLinesAndTheirNamesEndTheReason) {
  CaseVerdict verdict{Verdict::kDiverged, "token 3 differs", "golden.json", {}};
  explain_environment({.run_id = "a", .dtype = "fp32", .device = "card", .driver = "1"},
                      {.run_id = "b", .dtype = "bf16", .device = "cpu", .driver = "1"}, &verdict);
  EXPECT_THAT(verdict.environment, ElementsAre("dtype: golden fp32, result bf16", "device: golden card, result cpu"));
  EXPECT_EQ(verdict.reason, "token 3 differs; environment changed: dtype, device");
}

TEST(Environment, SameEnvironmentLeavesTheReasonAlone) {
  CaseVerdict verdict{Verdict::kDiverged, "token 3 differs", "golden.json", {}};
  explain_environment({.device = "card"}, {.device = "card", .platform = "known on one side"}, &verdict);
  EXPECT_THAT(verdict.environment, IsEmpty());
  EXPECT_EQ(verdict.reason, "token 3 differs");
}

TEST(Environment, ManyDifferencesAreCountedInTheReason) {
  CaseVerdict verdict{Verdict::kDrift, "x", "", {}};
  explain_environment({.engine = "a", .backend = "a", .dtype = "a", .device = "a", .driver = "a", .platform = "a"},
                      {.engine = "b", .backend = "b", .dtype = "b", .device = "b", .driver = "b", .platform = "b"},
                      &verdict);
  EXPECT_EQ(verdict.reason, "x; environment changed: engine, backend, dtype, device and 2 more");
}

TEST(Environment, GoldenThatCannotBeReadHasNoProvenance) {
  EXPECT_FALSE(provenance_of_golden("").has_value());
  EXPECT_FALSE(provenance_of_golden("no such file").has_value());
}

}  // namespace
}  // namespace assay::run
