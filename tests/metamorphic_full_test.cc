// The committed cases of the metamorphic suite, with their whole sizes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>

#include "tests/program.h"

namespace assay::tests {
namespace {

using ::testing::HasSubstr;
using Json = nlohmann::json;

TEST(MetamorphicSuite, EveryRelationOfTheTreeHoldsBitForBitInBothDtypesAtEverySize) {
  const TemporaryFolder folder;
  const Output run =
      run_program("assay", {"run", "testcases", "--filter", "*@*", "--json", "--output", folder / "out"});
  EXPECT_EQ(run.code, 0) << run.out << run.err;
  std::map<std::string, int> seen;
  for (const Json& row : Json::parse(run.out)) {
    const std::string name = row.at("name");
    EXPECT_EQ(row.at("verdict"), "IDENTICAL") << row.dump(1);
    EXPECT_THAT(row.at("reason").get<std::string>(), HasSubstr("is declared: equal bits alone pass")) << name;
    ++seen[row.at("relation")];
  }
  EXPECT_EQ(seen.size(), 12U);
  for (const auto& [relation, rows] : seen) EXPECT_GE(rows, 2) << relation << ": both dtypes";

  // The sizes that matter are asked for in both dtypes.
  const Json report = Json::parse(read_file(folder / "out/report.json"));
  for (const char* dtype : {"bf16", "fp32"}) {
    std::string ways;
    for (const Json& row : report.at("cases")) {
      if (row.at("name").get<std::string>().find(dtype) != std::string::npos) ways += row.at("metrics").dump();
    }
    for (const int batch : {1, 2, 3, 7, 8, 16, 33}) {
      EXPECT_THAT(ways, HasSubstr("batches of " + std::to_string(batch) + ":")) << dtype;
    }
    for (const int chunk : {1, 7, 255, 256, 257}) {
      EXPECT_THAT(ways, HasSubstr("chunks of " + std::to_string(chunk) + ":")) << dtype;
    }
  }
}

}  // namespace
}  // namespace assay::tests
