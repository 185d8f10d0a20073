#include "core/plugin/registry.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "core/plugin/doctor.h"
#include "tests/temporary_folder.h"
#include "tests/unreadable_directories.h"

namespace assay::plugin {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

const fs::path kBrokenPlugins = fs::path(ASSAY_BINARY_DIR) / "tests/broken_plugins";

class Registry : public ::testing::Test {
 protected:
  void SetUp() override {
    for (const char* dir : {"flag", "environment", "installed"}) fs::create_directories(root_ / dir);
  }

  void put(const std::string& dir, const std::string& name) {
    fs::copy_file(kBrokenPlugins / ("comparator_" + name + ".so"), root_ / dir / ("comparator_" + name + ".so"));
  }
  SearchOptions options() const {
    return {.plugin_path = {root_ / "flag"},
            .environment = (root_ / "environment").string(),
            .install_dir = root_ / "installed"};
  }

  const tests::TemporaryFolder own_folder_;
  const fs::path root_ = own_folder_.path();
};

TEST_F(Registry, SearchesFlagThenEnvironmentThenInstallDirectory) {
  put("installed", "in_order");
  put("environment", "in_order");
  put("flag", "in_order");
  PluginRegistry registry(options());
  const Result<const Plugin*> found = registry.find(Kind::kComparator, "in_order");
  ASSERT_TRUE(found.ok()) << found.status().message();
  EXPECT_EQ((*found)->file, root_ / "flag/comparator_in_order.so");
  ASSERT_EQ(registry.list().candidates.size(), 3u);
  EXPECT_TRUE(registry.list().candidates[0].shadowed_by.empty());
  EXPECT_EQ(registry.list().candidates[1].file, root_ / "environment/comparator_in_order.so");
  EXPECT_EQ(registry.list().candidates[1].shadowed_by, root_ / "flag/comparator_in_order.so");
  EXPECT_EQ(registry.list().candidates[2].shadowed_by, root_ / "flag/comparator_in_order.so");
}

TEST_F(Registry, EnvironmentMayNameSeveralDirectoriesAndOneTwice) {
  const std::string a = (root_ / "flag").string();
  const std::string b = (root_ / "environment").string();
  std::string path = ":";
  path.append(b).append("::").append(a).append(":").append(b);
  std::vector<std::string> order;
  for (const SearchDir& dir : search_dirs({.plugin_path = {}, .environment = path, .install_dir = a})) {
    order.push_back(dir.path.string() + (dir.trusted ? " trusted" : ""));
  }
  EXPECT_THAT(order, ElementsAre(b, a + " trusted"));
}

TEST_F(Registry, AbsentPluginNamesFoldersAndNeighbours) {
  put("installed", "in_order");
  PluginRegistry registry(options());
  const Result<const Plugin*> found = registry.find_metric_comparator("logprobs");
  ASSERT_FALSE(found.ok());
  EXPECT_EQ(found.status().code(), StatusCode::kNotFound);
  EXPECT_THAT(found.status().message(), AllOf(HasSubstr("comparator_logprobs.so"), HasSubstr("there are: in_order"),
                                              HasSubstr((root_ / "installed").string())));
}

TEST_F(Registry, AMetricIsServedByTheComparatorThatListsIt) {
  put("installed", "in_order");
  put("installed", "serves_speed");
  PluginRegistry registry(options());
  const Result<const Plugin*> speed = registry.find_metric_comparator("speed");
  ASSERT_TRUE(speed.ok()) << speed.status().message();
  EXPECT_EQ((*speed)->name, "serves_speed");
  EXPECT_THAT((*speed)->metrics, ElementsAre("speed", "heat"));
  EXPECT_EQ(*registry.find_metric_comparator("heat"), *speed);
  const Result<const Plugin*> own = registry.find_metric_comparator("in_order");
  ASSERT_TRUE(own.ok()) << own.status().message();
  EXPECT_THAT((*own)->metrics, ElementsAre("in_order"));
}

TEST_F(Registry, OfTwoComparatorsOfAMetricTheFirstInSearchOrderServes) {
  put("flag", "serves_speed");
  put("installed", "serves_heat");
  EXPECT_EQ((*PluginRegistry(options()).find_metric_comparator("heat"))->name, "serves_speed");
  put("environment", "serves_heat");
  fs::remove(root_ / "flag/comparator_serves_speed.so");
  EXPECT_EQ((*PluginRegistry(options()).find_metric_comparator("heat"))->file,
            root_ / "environment/comparator_serves_heat.so");
  put("environment", "serves_speed");
  EXPECT_EQ((*PluginRegistry(options()).find_metric_comparator("heat"))->name, "serves_heat");  // by file name
}

TEST_F(Registry, AComparatorThatListsOtherMetricsDoesNotServeItsOwnName) {
  put("flag", "speed");
  PluginRegistry alone(options());
  const Result<const Plugin*> none = alone.find_metric_comparator("speed");
  EXPECT_EQ(none.status().code(), StatusCode::kNotFound);
  EXPECT_THAT(none.status().message(), HasSubstr("comparator 'speed' does not serve metric 'speed', but weight"));
  put("installed", "serves_speed");
  EXPECT_EQ((*PluginRegistry(options()).find_metric_comparator("speed"))->name, "serves_speed");
}

TEST_F(Registry, ABrokenComparatorHidesNoOtherAndIsNamedWhereNoneServes) {
  put("flag", "bad_magic");
  put("flag", "null_metric");
  put("installed", "serves_speed");
  PluginRegistry registry(options());
  EXPECT_TRUE(registry.find_metric_comparator("heat").ok());
  const Result<const Plugin*> none = registry.find_metric_comparator("weight");
  EXPECT_EQ(none.status().code(), StatusCode::kNotFound);
  EXPECT_THAT(none.status().message(), AllOf(HasSubstr("not asked: comparator 'bad_magic': bad magic"),
                                             HasSubstr("name 1 of its metrics is null")));
}

TEST_F(Registry, NamesThatLeaveTheFolderAreNotFound) {
  put("installed", "in_order");
  PluginRegistry registry(options());
  EXPECT_EQ(registry.find(Kind::kComparator, "../installed/in_order").status().code(), StatusCode::kNotFound);
}

TEST_F(Registry, BrokenFirstFileIsReportedAndNotSkipped) {
  put("flag", "too_new");
  put("installed", "in_order");
  fs::rename(root_ / "installed/comparator_in_order.so", root_ / "installed/comparator_too_new.so");
  PluginRegistry registry(options());
  const Result<const Plugin*> found = registry.find(Kind::kComparator, "too_new");
  ASSERT_FALSE(found.ok());
  EXPECT_EQ(found.status().code(), StatusCode::kUnsupported);
  EXPECT_THAT(found.status().message(), HasSubstr("ABI too new"));
}

TEST_F(Registry, CrashingThirdPartyPluginDoesNotTakeTheProcessAlong) {
  put("flag", "segfaults");
  PluginRegistry registry(options());
  const Result<const Plugin*> found = registry.find(Kind::kComparator, "segfaults");
  ASSERT_FALSE(found.ok());
  EXPECT_THAT(found.status().message(), HasSubstr("crashed while probed"));
}

// A slip in --plugin-path would otherwise have the installed plugin of the name judged without a word.
TEST_F(Registry, AFolderOfThePathThatCannotBeReadIsNeverPassedOver) {
  put("installed", "in_order");
  std::ofstream(root_ / "file") << "x";
  fs::create_symlink("itself", root_ / "itself");
  for (const auto& [name, reason] : std::vector<std::pair<std::string, std::string>>{
           {"typo", "No such file"}, {"file", "Not a directory"}, {"itself", "symbolic links"}}) {
    SearchOptions search = options();
    search.plugin_path.push_back(root_ / name);
    const std::string line = "--plugin-path " + (root_ / name).string() + ": the folder cannot be read: ";
    const Status checked = check_search(search);
    EXPECT_EQ(checked.code(), StatusCode::kInvalid);
    EXPECT_THAT(checked.message(), AllOf(HasSubstr(line), HasSubstr(reason)));
    PluginRegistry registry(search);
    const Result<const Plugin*> found = registry.find(Kind::kComparator, "in_order");
    ASSERT_FALSE(found.ok()) << name;
    EXPECT_EQ(found.status().code(), StatusCode::kInfra);
    EXPECT_THAT(found.status().message(), HasSubstr(line));
    EXPECT_FALSE(registry.find_metric_comparator("in_order").ok());
  }
  SearchOptions search = options();
  search.environment = (root_ / "typo").string();
  EXPECT_TRUE(check_search(search).ok()) << "a variable may be for other machines, too";
  EXPECT_TRUE(PluginRegistry(search).find(Kind::kComparator, "in_order").ok());
}

TEST_F(Registry, AFolderThatFailsWhileItIsReadIsNotTakenForAnEmptyOne) {
  put("flag", "in_order");
  const auto seen = tests::with_unreadable_directories([this] { return check_search(options()).message(); });
  if (!seen) GTEST_SKIP() << "this kernel filters no system calls";
  EXPECT_THAT(*seen, HasSubstr("flag: the folder cannot be read: Input/output error"));
}

TEST_F(Registry, FoldersThatNoWorkerCouldBeToldOfAreRefused) {
  const fs::path bad = root_ / "p\xff";
  fs::create_directories(bad);
  SearchOptions search = options();
  search.plugin_path.push_back(bad);
  EXPECT_THAT(check_search(search).message(), HasSubstr("--plugin-path " + bad.string() + ": the name is no UTF-8"));
  search = options();
  search.environment += ":" + bad.string();
  EXPECT_THAT(check_search(search).message(), HasSubstr("the name is no UTF-8"));
  EXPECT_TRUE(check_search(options()).ok());
}

TEST_F(Registry, DoctorTellsEveryFileApart) {
  for (const char* name : {"in_order", "bad_magic", "aborts", "missing_symbol"}) put("flag", name);
  put("installed", "in_order");
  std::ofstream(root_ / "flag/notes.so") << "x";
  SearchOptions search = options();
  search.plugin_path.push_back(root_ / "nowhere");
  const DoctorReport report = doctor(search);
  EXPECT_FALSE(report.healthy());
  const nlohmann::json json = nlohmann::json::parse(to_json(report));
  ASSERT_EQ(json["plugins"].size(), 6u);
  std::map<std::string, std::string> failures;
  for (const nlohmann::json& row : json["plugins"]) {
    if (row["ok"] == false) failures[row["name"]] = row["failure"];
  }
  EXPECT_EQ(failures, (std::map<std::string, std::string>{{"bad_magic", "bad magic"},
                                                          {"aborts", "crashed while probed"},
                                                          {"missing_symbol", "cannot be loaded"},
                                                          {"", "wrong name"}}));
  const std::string text = to_text(report);
  EXPECT_THAT(text, AllOf(HasSubstr("ok       comparator in_order 3.2.1 (ABI 1.0): made to be refused"),
                          HasSubstr("shadowed comparator in_order"),
                          HasSubstr("nowhere  (cannot be read: No such file or directory)"),
                          HasSubstr("BROKEN   comparator bad_magic: bad magic")));
}

TEST_F(Registry, DoctorIsHealthyWhenOnlyAShadowedFileIsBroken) {
  put("flag", "in_order");
  std::ofstream(root_ / "installed/comparator_in_order.so") << "not ELF";
  const DoctorReport report = doctor(options());
  ASSERT_EQ(report.rows.size(), 2u);
  EXPECT_FALSE(report.rows[1].ok);
  EXPECT_TRUE(report.healthy());
  EXPECT_THAT(report.rows[0].capabilities, ElementsAre("text", "bit 40"));
  EXPECT_THAT(report.rows[0].metrics, ElementsAre("in_order"));
  EXPECT_EQ(report.rows[0].levels, "") << "a comparator has none";
}

TEST(LevelNames, ListWhatIsClaimed) {
  EXPECT_EQ(level_names(ASSAY_CAP_L1 | ASSAY_CAP_L2 | ASSAY_CAP_L3 | ASSAY_CAP_BATCH), "L1, L2, L3");
  EXPECT_EQ(level_names(ASSAY_CAP_L3), "L3");
  EXPECT_EQ(level_names(ASSAY_CAP_BATCH), "none");
  EXPECT_THAT(capability_names(ASSAY_CAP_L1 | ASSAY_CAP_L2), ElementsAre("L1", "L2"));
}

TEST_F(Registry, DoctorPrintsNoFileNameAsItIs) {
  for (const char* name : {"e\x1b[31m\nok all is well.so", "\xff.so", "engine_\x1b[31m.so"}) {
    std::ofstream(root_ / "installed" / name) << "x";
  }
  const DoctorReport report = doctor(options());
  const std::string text = to_text(report);
  EXPECT_EQ(text.find('\x1b'), std::string::npos) << text;
  EXPECT_EQ(text.find('\xff'), std::string::npos) << text;
  EXPECT_EQ(text.find("\nok all"), std::string::npos) << text;
  EXPECT_THAT(text, AllOf(HasSubstr("\\x1b[31m\\nok all is well.so"), HasSubstr("\\xff.so")));
  EXPECT_TRUE(nlohmann::json::accept(to_json(report)));
}

TEST_F(Registry, DoctorWithoutPluginsSaysSo) { EXPECT_THAT(to_text(doctor(options())), HasSubstr("no plugin files")); }

}  // namespace
}  // namespace assay::plugin
