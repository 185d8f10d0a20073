// Folders with a case, its golden and recorded results, for the tests of this room.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "core/compare/test_plugins.h"
#include "core/discover/discover.h"
#include "core/golden/file.h"
#include "core/govern/record.h"

namespace assay::govern {

class GovernTest : public testing::Test {
 protected:
  GovernTest()
      : root_(std::filesystem::temp_directory_path() /
              ("govern_" + std::to_string(getpid()) + "_" +
               testing::UnitTest::GetInstance()->current_test_info()->name())) {
    std::filesystem::remove_all(root_);
    std::filesystem::create_directories(folder());
  }
  ~GovernTest() override { std::filesystem::remove_all(root_); }

  std::filesystem::path folder() const { return root_ / "moe" / "one"; }
  std::string at(const std::string& name) const { return (folder() / name).string(); }
  void write(const std::string& name, const std::string& text) { std::ofstream(folder() / name) << text; }
  std::string text_of(const std::string& name) const {
    const auto text = read_file(at(name));
    return text ? *text : "";
  }
  // A case with these METRICS (a YAML list) and further lines.
  TestCase test_case(const std::string& metrics, const std::string& more = "") {
    write("model_config.yaml", "MODE: inference\nMODEL_ARGS:\n  --a: 1\nMETRICS: " + metrics + "\n" + more);
    const auto cases = discover::discover({folder().string()});
    EXPECT_TRUE(cases.ok() && cases->size() == 1 && cases->front().error.ok());
    return cases->front();
  }
  // Records `json` as results for dev, cpu_x86_64.
  Result<Recorded> record_text(const TestCase& test, const std::string& json) {
    Recording recording;
    recording.test = &test;
    recording.environment = "dev";
    recording.platform = "cpu_x86_64";
    recording.results = *read_results_text(json, "actual.json");
    recording.provenance.engine = "toy";
    recording.provenance.device = "new device";
    recording.info = {"2026-11-29T10:00:00Z", "run-7", "assay record", ""};
    return record(recording, compare::built_comparator);
  }

  static constexpr const char* kPending = "golden_values_dev_cpu_x86_64.pending.json";
  static constexpr const char* kGolden = "golden_values_dev_cpu_x86_64.json";

  std::filesystem::path root_;
};

}  // namespace assay::govern
