// For tests of whole runs: cases of the test engine in a folder of their own, run with real workers.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "core/discover/discover.h"
#include "core/run/event_file.h"
#include "core/run/events.h"
#include "core/run/journal.h"
#include "core/run/run.h"
#include "tests/temporary_folder.h"

namespace assay::run {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

inline const fs::path kBuild = ASSAY_BINARY_DIR;

class Silent : public RunObserver {
 public:
  void run_started(const RunInfo& info) override { started = info; }
  void case_started(const std::string&, const std::string&) override {}
  void case_finished(const CaseOutcome& outcome) override { order.push_back(outcome.name); }
  void note(const std::string&, const std::string&) override {}
  void run_finished(const RunSummary&) override { ++finished; }

  RunInfo started;
  std::vector<std::string> order;
  int finished = 0;
};

class Run : public ::testing::Test {
 protected:
  void SetUp() override {
    fs::create_directories(dir_ / "cases");
    options_.output = dir_ / "out";
    options_.worker = kBuild / "bin/assay-worker";
    options_.plugins.install_dir = kBuild / "lib/assay/plugins";
    options_.plugins.plugin_path = {kBuild / "tests/plugins"};
    options_.platform = "here";
    options_.case_timeout = std::chrono::seconds(120);
  }

  // A case of the test engine; `more` is added to its config.
  fs::path add_case(const std::string& name, const std::vector<std::string>& prompts, const std::string& more = "",
                    const std::string& assay = "  engine: misbehaving\n") {
    fs::path folder = dir_ / "cases" / name;
    fs::create_directories(folder);
    std::ofstream lines(folder / "prompts.jsonl");
    for (const std::string& prompt : prompts) lines << Json{{"text", prompt}} << "\n";
    std::ofstream(folder / "model_config.yaml")
        << "MODE: inference\nTEST_TYPE: frozen-start\nMODEL_ARGS:\n  --load: nowhere\n  --tokenizer-type: "
           "NullTokenizer\n"
        << "  --vocab-size: 100\n  --output-path: ${INFERENCE_OUTPUT_PATH}\n  --prompt-file: "
        << (folder / "prompts.jsonl").string() << "\n"
        << more << (more.find("METRICS") == std::string::npos ? "METRICS: [generated_text]\n" : "") << "ASSAY:\n"
        << assay;
    return folder;
  }
  static void add_golden(const fs::path& folder, const std::string& prompt, const std::string& text) {
    std::ofstream(folder / "golden_values_dev_here.json")
        << Json{{"0", {{"input_prompt", prompt}, {"generated_text", text}}}};
  }

  void run() {
    Result<std::vector<TestCase>> cases = discover::discover({(dir_ / "cases").string()});
    ASSERT_TRUE(cases.ok()) << cases.status().message();
    options_.cases = *std::move(cases);
    if (!options_.resume) {
      const Status discarded = discard_run(options_.output);
      ASSERT_TRUE(discarded.ok()) << discarded.message();
    }
    observer_ = Silent();
    result_ = run::run(options_, observer_);
    EXPECT_EQ(observer_.finished, result_->ok() ? 1 : 0);
  }
  const RunSummary& summary() const { return **result_; }
  const CaseOutcome& outcome(const std::string& name) const {
    for (const CaseOutcome& one : summary().outcomes) {
      if (one.name == name) return one;
    }
    static const CaseOutcome none;
    ADD_FAILURE() << "no outcome of " << name;
    return none;
  }
  std::string verdict(const std::string& name) const { return std::string(to_string(outcome(name).verdict.verdict)); }
  std::string reason(const std::string& name) const { return outcome(name).verdict.reason; }
  size_t events(std::string_view name) const {
    size_t count = 0;
    const Result<std::vector<std::string>> lines = read_event_lines(options_.output / "results.jsonl");
    for (const std::string& line : *lines) count += (*parse_line(line))["event"] == name ? 1 : 0;
    return count;
  }

  const tests::TemporaryFolder own_folder_;
  const fs::path dir_ = own_folder_.path();
  RunOptions options_;
  Silent observer_;
  std::optional<Result<RunSummary>> result_;
};

}  // namespace assay::run
