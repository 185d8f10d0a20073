#include "core/golden/golden_name.h"

#include <array>

namespace assay {
namespace {

constexpr std::string_view kPrefix = "golden_values_";
constexpr std::string_view kSuffix = ".json";
constexpr std::string_view kPending = ".pending";
constexpr std::array<std::string_view, 15> kPlatforms = {
    "any",       "cpu_x86_64", "cpu_aarch64", "dgx_a100",  "dgx_h100",  "dgx_h200", "dgx_b200", "dgx_b300",
    "dgx_gb200", "dgx_gb300",  "dgx_v100",    "dgx_gh200", "dgx_spark", "rtx_4090", "rtx_5090"};

}  // namespace

std::optional<GoldenName> parse_golden_name(std::string_view file) {
  if (file.size() < kPrefix.size() + kSuffix.size() || !file.starts_with(kPrefix) || !file.ends_with(kSuffix)) {
    return std::nullopt;
  }
  GoldenName name;
  std::string_view middle = file.substr(kPrefix.size(), file.size() - kPrefix.size() - kSuffix.size());
  if (middle.ends_with(kPending)) {
    name.pending = true;
    middle.remove_suffix(kPending.size());
  }
  const size_t split = middle.find('_');
  name.environment = middle.substr(0, split);
  if (split != std::string_view::npos) name.platform = middle.substr(split + 1);
  return name;
}

bool is_golden_name(std::string_view file) {
  const auto name = parse_golden_name(file);
  return name && !name->pending;
}

std::string golden_name(std::string_view environment, std::string_view platform) {
  return std::string(kPrefix).append(environment).append("_").append(platform).append(kSuffix);
}

std::string pending_name(std::string_view environment, std::string_view platform) {
  return std::string(kPrefix).append(environment).append("_").append(platform).append(kPending).append(kSuffix);
}

std::span<const std::string_view> known_platforms() { return kPlatforms; }

}  // namespace assay
