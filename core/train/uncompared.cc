#include "core/train/uncompared.h"

namespace assay::train {
namespace {

bool holds(const std::string* text, std::string_view word) { return text != nullptr && *text == word; }

}  // namespace

const std::string* env_var(const TestCase& test, std::string_view name) {
  const std::string* value = nullptr;
  for (const EnvVar& variable : test.env_vars) {
    if (variable.name == name) value = &variable.value;
  }
  return value;
}

bool is_lightweight(const TestCase& test, const discover::Variables& variables) {
  constexpr std::string_view kName = "ENABLE_LIGHTWEIGHT_MODE";
  return holds(variables.find(kName), "true") || holds(env_var(test, kName), "true");
}

std::string why_uncompared(const TestCase& test, const discover::Variables& variables) {
  if (holds(variables.find("RECORD_CHECKPOINTS"), "true")) return "RECORD_CHECKPOINTS";
  const bool can_be_light = test.mode != "rl" && test.test_type != "release";
  if (can_be_light && is_lightweight(test, variables)) return "ENABLE_LIGHTWEIGHT_MODE";
  if (holds(env_var(test, "SKIP_PYTEST"), "1")) return "SKIP_PYTEST";
  return "";
}

}  // namespace assay::train
