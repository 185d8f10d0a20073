#include "core/run/result_path.h"

#include <gmock/gmock.h>
#include <unistd.h>

#include <fstream>

namespace assay::run {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

class ResultPath : public testing::Test {
 protected:
  ResultPath() {
    fs::remove_all(dir_);
    fs::create_directories(dir_ / "case");
    fs::create_directories(dir_ / "out");
    test_.dir = (dir_ / "case").string();
    test_.config = (dir_ / "case/model_config.yaml").string();
    for (const char* file : {"model_config.yaml", "golden_values_dev_here.json", "prompts.jsonl"}) {
      std::ofstream(dir_ / "case" / file) << "text";
    }
  }
  ~ResultPath() override { fs::remove_all(dir_); }
  std::string refusal(const fs::path& path) const {
    const Status status = check_result_path(
        "--output-path", path, test_, {{"the golden", golden_}, {"the prompt file", dir_ / "case/prompts.jsonl"}});
    EXPECT_THAT(status.message(), Not(HasSubstr("\n")));
    return status.message();
  }

  const fs::path dir_ = fs::path(testing::TempDir()) / ("result_path_" + std::to_string(::getpid()));
  fs::path golden_ = dir_ / "elsewhere/g.json";  // not there yet
  TestCase test_;
};

TEST_F(ResultPath, WhatTheCaseIsMadeOfIsRefusedByAnyName) {
  EXPECT_THAT(refusal(test_.config), AllOf(HasSubstr("--output-path"), HasSubstr("is the config of the case")));
  EXPECT_THAT(refusal(dir_ / "case/prompts.jsonl"), HasSubstr("is the prompt file of the case"));
  EXPECT_THAT(refusal(dir_ / "case/golden_values_dev_here.json"), HasSubstr("is a golden of the case"));
  EXPECT_THAT(refusal(dir_ / "case/golden_values_lts_there.json"), HasSubstr("is a golden of the case"));
  EXPECT_THAT(refusal(dir_ / "case/../case/./prompts.jsonl"), HasSubstr("the prompt file"));
  EXPECT_THAT(refusal(golden_), HasSubstr("is the golden of the case"));
  EXPECT_THAT(refusal(dir_ / "none/../elsewhere/g.json"), HasSubstr("is the golden of the case"));
  fs::create_directory_symlink(dir_ / "case", dir_ / "linked");
  EXPECT_THAT(refusal(dir_ / "linked/model_config.yaml"), HasSubstr("the config"));
  EXPECT_THAT(refusal(dir_ / "linked/golden_values_dev_new.json"), HasSubstr("a golden"));
  fs::create_symlink(dir_ / "case/prompts.jsonl", dir_ / "out/a.json");
  EXPECT_THAT(refusal(dir_ / "out/a.json"), HasSubstr("the prompt file"));
  fs::create_hard_link(test_.config, dir_ / "out/b.json");
  EXPECT_THAT(refusal(dir_ / "out/b.json"), HasSubstr("the config"));
}

TEST_F(ResultPath, OtherPlacesAreFree) {
  EXPECT_EQ(refusal(""), "");
  EXPECT_EQ(refusal(dir_ / "out/golden_values_dev_here.json"), "");
  EXPECT_EQ(refusal(dir_ / "case/results.json"), "");
  golden_ = "";
  EXPECT_EQ(refusal(dir_ / "elsewhere/g.json"), "");
}

}  // namespace
}  // namespace assay::run
