// The conformance kit on every plugin of this build. What a plugin needs to be opened with stands beside its code:
// plugins/<kind>s/<name>/conformance.json, {"options": {...}, "prompts": [...]}, where ${SOURCE} is the source folder.
#include <gmock/gmock.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "core/conformance/kit.h"
#include "tests/program.h"

namespace assay::tests {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> plugins() {
  std::vector<std::string> names;
  std::error_code none;
  for (const auto& entry : fs::directory_iterator(ASSAY_BINARY_DIR "/lib/assay/plugins", none)) {
    if (entry.path().extension() == ".so") names.push_back(entry.path().stem().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

conformance::KitOptions options_of(const std::string& plugin) {
  const size_t cut = plugin.find('_');
  std::string text = read_file(fs::path(ASSAY_SOURCE_DIR) / "plugins" / (plugin.substr(0, cut) + "s") /
                               plugin.substr(cut + 1) / "conformance.json");
  conformance::KitOptions options;
  if (text.empty()) return options;
  const std::string variable = "${SOURCE}";
  for (size_t at = text.find(variable); at != std::string::npos; at = text.find(variable)) {
    text.replace(at, variable.size(), ASSAY_SOURCE_DIR);
  }
  const nlohmann::json file = nlohmann::json::parse(text);
  options.options = file.value("options", nlohmann::json::object()).dump();
  options.prompts = file.value("prompts", std::vector<std::string>());
  return options;
}

class EveryPlugin : public testing::TestWithParam<std::string> {};

TEST_P(EveryPlugin, KeepsWhatTheBorderPromises) {
  const auto report =
      conformance::test_plugin(ASSAY_BINARY_DIR "/lib/assay/plugins/" + GetParam() + ".so", options_of(GetParam()));
  ASSERT_TRUE(report.ok()) << report.status().message();
  EXPECT_TRUE(report->passed()) << conformance::to_text(*report);
}

INSTANTIATE_TEST_SUITE_P(Build, EveryPlugin, testing::ValuesIn(plugins()), [](const auto& one) {
  std::string name = one.param;
  std::replace_if(
      name.begin(), name.end(), [](char c) { return std::isalnum(static_cast<unsigned char>(c)) == 0; }, '_');
  return name;
});

TEST(Plugins, OfThisBuildAreThere) { EXPECT_GE(plugins().size(), 15U); }

}  // namespace
}  // namespace assay::tests
