#include "core/run/backend_choice.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "tests/temporary_folder.h"

namespace assay::run {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::StartsWith;

const fs::path kPlugins = fs::path(ASSAY_BINARY_DIR) / "tests/plugins";

plugin::PluginRegistry registry_of(const fs::path& dir) {
  return plugin::PluginRegistry({.plugin_path = {}, .environment = "", .install_dir = dir});
}

TEST(BackendChoice, HighestPreferenceWinsAndACrashingBackendCostsNothing) {
  const plugin::PluginRegistry registry = registry_of(kPlugins);
  BackendChoice choice(registry);
  const Result<std::string> best = choice.best();
  ASSERT_TRUE(best.ok()) << best.status().message();
  EXPECT_EQ(*best, "fake_high");
  EXPECT_EQ(choice.state("fake_low").device, "low device");
  EXPECT_EQ(choice.state("fake_crashing").preference, 0);
  EXPECT_THAT(choice.state("fake_crashing").device, HasSubstr("SIGABRT"));
}

TEST(BackendChoice, SaysHowWorkersAreBoundToDevices) {
  const plugin::PluginRegistry registry = registry_of(kPlugins);
  BackendChoice choice(registry);
  EXPECT_EQ(choice.state("fake_cards").device, "two cards");
  EXPECT_EQ(choice.state("fake_cards").device_variable, "FAKE_VISIBLE_DEVICES");
  EXPECT_EQ(choice.state("fake_cards").device_indices, "0,2");
  EXPECT_EQ(choice.state("fake_low").device_variable, "");
}

TEST(BackendChoice, UnusableBackendGivesItsReason) {
  const plugin::PluginRegistry registry = registry_of(kPlugins);
  BackendChoice choice(registry);
  EXPECT_EQ(choice.state("fake_absent").preference, 0);
  EXPECT_EQ(choice.state("fake_absent").device, "no such card");
  EXPECT_FALSE(choice.exists("nothing"));
  EXPECT_EQ(choice.state("nothing").preference, 0);
}

TEST(BackendChoice, NoUsableBackendNamesEveryReason) {
  const tests::TemporaryFolder folder;
  const fs::path& dir = folder.path();
  {
    const plugin::PluginRegistry registry = registry_of(dir);
    BackendChoice choice(registry);
    EXPECT_THAT(choice.best().status().message(), HasSubstr("no backend plugin was found"));
  }
  fs::copy_file(kPlugins / "backend_fake_absent.so", dir / "backend_fake_absent.so");
  const plugin::PluginRegistry registry = registry_of(dir);
  BackendChoice choice(registry);
  const Result<std::string> best = choice.best();
  EXPECT_EQ(best.status().code(), StatusCode::kInfra);
  EXPECT_THAT(best.status().message(), HasSubstr("fake_absent: no such card"));
}

TEST(BackendChoice, CpuAndReferenceShareTheirPlatform) {
  EXPECT_THAT(default_platform("cpu"), StartsWith("cpu_"));
  EXPECT_EQ(default_platform("cpu"), default_platform("reference"));
  EXPECT_THAT(default_platform("cuda"), StartsWith("cuda_"));
}

}  // namespace
}  // namespace assay::run
