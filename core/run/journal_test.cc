// What a run finds in its output folder.
#include "core/run/journal.h"

#include <gmock/gmock.h>

#include "core/run/run_fixture.h"

namespace assay::run {
namespace {

using testing::HasSubstr;

class Output : public Run {
 protected:
  void SetUp() override {
    Run::SetUp();
    add_golden(add_case("a", {"ok echo"}), "ok echo", "echo");
  }
  void write(const std::string& name, const std::string& text) const {
    fs::create_directories((options_.output / name).parent_path());
    std::ofstream(options_.output / name, std::ios::binary) << text;
  }
  std::string text(const std::string& name) const {
    const Result<std::string> read = read_file(options_.output / name);
    return read ? *read : "none";
  }
  // As a user starts a run: what is there is not put aside before.
  Result<RunSummary> run_into() {
    Result<std::vector<TestCase>> cases = discover::discover({(dir_ / "cases").string()});
    options_.cases = *std::move(cases);
    return run::run(options_, observer_);
  }
};

TEST_F(Output, ThatHoldsARunIsRefusedAndStaysAsItIs) {
  ASSERT_TRUE(run_into().ok());
  const std::string before = text("results.jsonl");
  const Result<RunSummary> again = run_into();
  ASSERT_FALSE(again.ok());
  EXPECT_EQ(again.status().code(), StatusCode::kInvalid);
  EXPECT_THAT(again.status().message(), HasSubstr("--resume"));
  EXPECT_EQ(text("results.jsonl"), before);
  EXPECT_TRUE(fs::exists(options_.output / "workers/w000.plan.json"));
  write("results.jsonl", before.substr(0, before.size() - 5));
  EXPECT_FALSE(run_into().ok()) << "one that was killed";
}

TEST_F(Output, WithoutACaseWrittenDownIsTaken) {
  options_.filter = "nothing";
  ASSERT_TRUE(run_into().ok());
  options_.filter = "";
  ASSERT_TRUE(run_into().ok());
  write("results.jsonl", "{\"event\":\"run_sta");
  EXPECT_TRUE(run_into().ok());
}

TEST_F(Output, OfSomebodyElseIsRefusedAndStaysAsItIs) {
  for (const char* name : {"workers/mine.txt", "workers/w000", "cases/a/actual.json", "report.html", "report.json",
                           "junit.xml", "results.jsonl"}) {
    fs::remove_all(options_.output);
    write(name, "mine\n");
    const Result<RunSummary> refused = run_into();
    ASSERT_FALSE(refused.ok()) << name;
    EXPECT_EQ(refused.status().code(), StatusCode::kInvalid) << name;
    EXPECT_THAT(refused.status().message(), HasSubstr(fs::path(name).begin()->string())) << name;
    EXPECT_EQ(text(name), "mine\n");
    EXPECT_FALSE(discard_run(options_.output).ok() && std::string(name) == "results.jsonl") << "nor is it discarded";
    EXPECT_EQ(text(name), "mine\n");
  }
  fs::remove_all(options_.output);
  write("notes.txt", "mine\n");
  EXPECT_TRUE(run_into().ok()) << "nothing of ours has that name";
}

TEST_F(Output, ThatWasDiscardedIsTakenAndForeignFilesAmongThoseOfWorkersAreNot) {
  ASSERT_TRUE(run_into().ok());
  ASSERT_TRUE(discard_run(options_.output).ok());
  ASSERT_TRUE(run_into().ok());
  ASSERT_TRUE(discard_run(options_.output).ok());
  write("workers/mine.txt", "mine\n");
  EXPECT_FALSE(run_into().ok());
  EXPECT_EQ(text("workers/mine.txt"), "mine\n");
  EXPECT_TRUE(fs::exists(options_.output / "workers/w000.plan.json")) << "nothing is removed, then";
}

}  // namespace
}  // namespace assay::run
