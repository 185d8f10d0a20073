#include "core/golden/golden_name.h"

namespace assay {
namespace {

constexpr std::string_view kPrefix = "golden_values_";
constexpr std::string_view kSuffix = ".json";
constexpr std::string_view kPending = ".pending";

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

}  // namespace assay
