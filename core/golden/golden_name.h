// Names of golden files and of pending ones, in one place: what is a golden and what must never be taken for one.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace assay {

struct GoldenName {
  std::string environment;  // up to the first underscore: "dev", "lts"
  std::string platform;     // the rest: "dgx_h100", "any"; empty: the name has none
  bool pending = false;     // recorded, not accepted
};

// golden_values_<environment>_<platform>.json, or .pending.json; nullopt for any other file name.
std::optional<GoldenName> parse_golden_name(std::string_view file);

// True for the name of a golden; false for a pending one and for anything else.
bool is_golden_name(std::string_view file);

std::string golden_name(std::string_view environment, std::string_view platform);
std::string pending_name(std::string_view environment, std::string_view platform);

}  // namespace assay
