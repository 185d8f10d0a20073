// Whole runs whose workers come upon secrets: no file of the output folder has one.
#include <gmock/gmock.h>

#include "core/run/run_fixture.h"

namespace assay::run {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

const std::string kSecret = "tOpSeCrEt99";

class SecretRun : public Run {
 protected:
  void SetUp() override {
    Run::SetUp();
    options_.environment = {{"PATH", "/usr/bin:/bin"}, {"HUB_TOKEN", kSecret}};
  }
  // What some program wrote, and nobody cleaned.
  void write(const std::string& name) const {
    fs::create_directories((options_.output / name).parent_path());
    std::ofstream(options_.output / ".lock");  // a run was here before
    std::ofstream(options_.output / name) << "token " << kSecret << "\n";
  }
  std::vector<std::string> files_with_secrets() const {
    std::vector<std::string> found;
    for (const auto& entry : fs::recursive_directory_iterator(options_.output)) {
      if (!entry.is_regular_file()) continue;
      const Result<std::string> text = read_file(entry.path());
      if (text.ok() && text->find(kSecret) != std::string::npos) found.push_back(entry.path());
    }
    return found;
  }
};

TEST_F(SecretRun, NeitherEventsNorLogsNorReasonsHaveOne) {
  add_golden(add_case("a", {"fail cannot log in with " + kSecret}), "p", "x");
  write("cases/a/server.log");
  run();
  ASSERT_TRUE(result_->ok()) << result_->status().message();
  EXPECT_THAT(reason("a"), HasSubstr("cannot log in with ***"));
  EXPECT_THAT(*read_file(options_.output / "workers/w000.events.jsonl"), HasSubstr("cannot log in with ***"));
  EXPECT_EQ(*read_file(options_.output / "cases/a/server.log"), "token ***\n");
  EXPECT_THAT(files_with_secrets(), IsEmpty());
}

// Its engine had no time to clean what it keeps.
TEST_F(SecretRun, WhatAWorkerThatDiedLeftBehindHasNone) {
  add_golden(add_case("a", {"segv"}), "segv", "x");
  for (const char* name : {"process/stderr.txt", "process/logs/none_x/attempt_0/3/stdout.log", "process/output.json"}) {
    write("cases/a/" + std::string(name));
  }
  run();
  ASSERT_TRUE(result_->ok()) << result_->status().message();
  EXPECT_EQ(verdict("a"), "CRASHED");
  EXPECT_EQ(*read_file(options_.output / "cases/a/process/output.json"), "token ***\n");
  EXPECT_THAT(files_with_secrets(), IsEmpty());
}

}  // namespace
}  // namespace assay::run
