#include "core/golden/pending.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "core/golden/stable_text.h"

namespace assay {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;

class Pending : public testing::Test {
 protected:
  Pending() : folder_(fs::temp_directory_path() / ("pending_test_" + std::to_string(getpid()))) {
    fs::remove_all(folder_);
    fs::create_directories(folder_);
  }
  ~Pending() override { fs::remove_all(folder_); }
  std::string write(const std::string& name, const std::string& text) {
    std::ofstream(folder_ / name) << text;
    return (folder_ / name).string();
  }
  fs::path folder_;
};

TEST_F(Pending, ReadsBackWithWhatMadeIt) {
  PendingGolden pending;
  pending.results = *read_results_text(R"({"0": {"generated_text": "x"}})", "x");
  pending.meta.provenance = Provenance{.engine = "static_legacy"};
  pending.meta.further = {{"note", "[1,2]"}};
  pending.info = {"2026-11-29T19:22:41Z", "run-1", "assay record \"a\"", "abc"};
  const std::string path = write("golden_values_dev_cpu_x86_64.pending.json", pending_text(pending));
  const auto back = read_pending(path, "/cases/one");
  ASSERT_TRUE(back.ok()) << back.status().message();
  EXPECT_EQ(back->golden_path, "/cases/one/golden_values_dev_cpu_x86_64.json");
  EXPECT_EQ(back->name.platform, "cpu_x86_64");
  EXPECT_EQ(back->info.command, "assay record \"a\"");
  EXPECT_EQ(back->info.golden_sha256, "abc");
  EXPECT_EQ(back->meta.provenance->engine, "static_legacy");
  EXPECT_EQ(back->meta.further, pending.meta.further);
  EXPECT_EQ(back->results.requests[0].text, "x");
  EXPECT_EQ(pending_text(*back), pending_text(pending));
}

TEST_F(Pending, FilesThatNoRecordingMadeAreRefused) {
  const std::string name = "golden_values_dev_any.pending.json";
  for (const auto& [text, message] :
       {std::pair(R"({"0": {"generated_text": "x"}})", "no member \"pending\""),
        std::pair(R"({"0": {"generated_text": "x"}, "assay": {"pending": 3}})", "is no object"),
        std::pair(R"({"0": {"generated_text": "x"}, "assay": {"pending": {"run_id": 3}}})", "\"run_id\""),
        std::pair(R"({"0": )", "not valid JSON"), std::pair("", "is empty")}) {
    EXPECT_THAT(read_pending(write(name, text), folder_.string()).status().message(), HasSubstr(message));
  }
  const auto golden = read_pending(write("golden_values_dev_any.json", "{}"), folder_.string());
  EXPECT_THAT(golden.status().message(), HasSubstr("not the name of a pending golden"));
}

TEST_F(Pending, ListingFindsPendingFilesAlone) {
  write("golden_values_dev_b.pending.json", "");
  write("golden_values_dev_a.pending.json", "");
  write("golden_values_dev_a.json", "");
  write("golden_values_dev_a.pending.json.x3Fg5y", "");
  EXPECT_THAT(*list_pending(folder_.string()),
              ElementsAre(folder_ / "golden_values_dev_a.pending.json", folder_ / "golden_values_dev_b.pending.json"));
  EXPECT_TRUE(list_pending((folder_ / "none").string())->empty());
}

TEST_F(Pending, TheDigestOfAGoldenIsThatOfWhatItSays) {
  const std::string a = write("a.json", R"({"0": {"generated_tokens": [1], "generated_text": "x"}})");
  const std::string b = write("b.json", stable_text(*read_results(a)));
  EXPECT_EQ(*golden_digest(a), *golden_digest(b));
  write("b.json", R"({"0": {"generated_tokens": [2], "generated_text": "x"}})");
  EXPECT_NE(*golden_digest(a), *golden_digest(b));
  EXPECT_EQ(*golden_digest((folder_ / "none").string()), "");
}

}  // namespace
}  // namespace assay
