// The folder of a self-test: cases, golden values made by the correct engine, runs.
//
//   FOLDER/golden/NAME.json          golden values of a base
//   FOLDER/cases/GROUP/NAME/         model_config.yaml and a link to its golden
//   FOLDER/runs/GROUP/               output folder of the run of a group
#pragma once

#include <atomic>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "assay/case.h"
#include "assay/status.h"
#include "core/plugin/search_path.h"
#include "core/run/run.h"
#include "tools/self_test/case_text.h"

namespace assay::self_test {

struct WorkshopOptions {
  std::filesystem::path folder;
  std::filesystem::path worker;                    // the assay-worker executable
  std::map<std::string, std::string> environment;  // of the calling process
  plugin::SearchOptions plugins;
  int jobs = 2;  // workers at once
  const std::atomic<bool>* cancel = nullptr;
};

// What a group is run with.
struct GroupRun {
  std::string engine = "static_legacy";
  std::string engine_options = {};  // JSON object; empty: the case's
  std::string backend = "cpu";
  std::string backend_options = R"({"threads":1})";
  int repeat = 1;  // runs of each case
};

// A case that is run against a golden made beforehand.
struct Base {
  TestCase test = {};
  std::filesystem::path golden = {};
  std::string content = {};  // content_of(golden), trial.h
};

// For one thread.
class Workshop {
 public:
  explicit Workshop(WorkshopOptions options) : options_(std::move(options)) {}

  const std::filesystem::path& folder() const { return options_.folder; }

  // Records the golden of `test` under `name`: what engine static_legacy says with `change` and `how`. Fails when the
  // engine cannot run the case.
  Result<Base> record(const std::string& name, const TestCase& test, const CaseChange& change, const GroupRun& how);

  // Writes case `name` of `group`, with a link to the base's golden unless relations judge it.
  Status add_case(const std::string& group, const std::string& name, const Base& base, const CaseChange& change);

  std::filesystem::path case_folder(const std::string& group, const std::string& name) const;

  // Runs the cases of `group`; outcomes in the order of their names.
  Result<run::RunSummary> run(const std::string& group, const GroupRun& how);

 private:
  WorkshopOptions options_;
};

}  // namespace assay::self_test
