// Plugins and hosts of other generations of the ABI: what a plugin built with old headers, or with later ones, does
// here, and what today's plugins do in an old host.
#include <gmock/gmock.h>

#include <cstdlib>

#include "assay/sdk.hpp"
#include "core/conformance/kit.h"
#include "core/plugin/host.h"
#include "core/plugin/plugin.h"

namespace assay::conformance {
namespace {

const std::string kFolder = ASSAY_BINARY_DIR "/tests/generations/";
const std::string kToday = ASSAY_BINARY_DIR "/lib/assay/plugins/";

TEST(Generations, PluginsBuiltWithOldHeadersAreInOrderHere) {
  for (const std::string name :
       {"engine_generation_1_0", "engine_generation_1_3", "comparator_generation_1_0", "comparator_generation_1_3"}) {
    const auto report = test_plugin(kFolder + name + ".so", {});
    ASSERT_TRUE(report.ok());
    EXPECT_TRUE(report->passed()) << to_text(*report);
    EXPECT_EQ(report->abi, name.ends_with("1_0") ? "1.0" : "1.3");
  }
}

TEST(Generations, APluginOfALaterMinorWithALongerTableIsInOrderHere) {
  plugin::Plugin loaded;
  const auto broken = plugin::load(kFolder + "engine_generation_later.so", plugin::silent_host(), &loaded);
  ASSERT_FALSE(broken.has_value()) << broken->message;
  EXPECT_GT(loaded.abi_minor, ASSAY_ABI_MINOR);
  EXPECT_GT(loaded.engine()->size, sizeof(assay_engine_table));
  const auto report = test_plugin(loaded.file, {});
  ASSERT_TRUE(report.ok());
  EXPECT_TRUE(report->passed()) << to_text(*report);
}

TEST(Generations, ATableOfOldHeadersHasNoLaterEntries) {
  plugin::Plugin loaded;
  ASSERT_FALSE(plugin::load(kFolder + "engine_generation_1_0.so", plugin::silent_host(), &loaded).has_value());
  EXPECT_FALSE(ASSAY_KNOWS(loaded.engine(), info));
  EXPECT_FALSE(ASSAY_KNOWS(loaded.engine(), train));
  ASSERT_FALSE(plugin::load(kFolder + "comparator_generation_1_0.so", plugin::silent_host(), &loaded).has_value());
  EXPECT_FALSE(ASSAY_KNOWS(loaded.comparator(), metrics));
  EXPECT_EQ(loaded.metrics, std::vector<std::string>{"generation_1_0"}) << "its own name";
}

TEST(Generations, TodaysPluginsServeOldHosts) {
  for (const char* version : {"1_0", "1_3"}) {
    for (const char* comparator : {"comparator_example_minimal.so", "comparator_generated_text.so"}) {
      const std::string command =
          kFolder + "old_host_" + version + " " + kToday + "engine_example_minimal.so " + kToday + comparator;
      EXPECT_EQ(std::system(command.c_str()), 0) << command;  // NOLINT: the words are ours
    }
  }
}

}  // namespace
}  // namespace assay::conformance
