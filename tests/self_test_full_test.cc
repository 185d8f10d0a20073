// The whole self-test: every fault at ten places, and every benign change.
#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "tests/program.h"

namespace assay::tests {
namespace {

using nlohmann::json;

TEST(FullSelfTest, EveryFaultIsNoticedAtTenPlacesAndNoBenignChangeIs) {
  const Output output = run_program("assay", {"self-test", "--json"});
  const json report = json::parse(output.out, nullptr, false);
  ASSERT_TRUE(report.is_object()) << output.out << output.err;
  for (const json& fault : report["faults"]) {
    EXPECT_TRUE(fault["not_killed"].empty()) << fault.dump(1);
    if (fault["name"] == "hang") continue;  // costs seconds a place
    if (fault["family"] == "condition") {   // so does a relation
      EXPECT_EQ(fault["seeds"], 3) << fault["name"];
      EXPECT_GE(fault["places"], 1) << fault["name"];
      continue;
    }
    EXPECT_GE(fault["places"], 10) << fault["name"];
  }
  EXPECT_GE(report["faults"].size(), 24U);
  EXPECT_EQ(report["alarms"], 0) << report["controls"].dump(1);
  EXPECT_GE(report["controls"].size(), 5U);
  EXPECT_EQ(output.code, 0);
}

}  // namespace
}  // namespace assay::tests
