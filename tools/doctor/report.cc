#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "assay/plugin_abi.h"
#include "core/golden/text.h"
#include "tools/doctor/doctor.h"

namespace assay::doctor {
namespace {

constexpr std::array kWords = {"ok", "warning", "problem"};

std::string_view word(State state) { return kWords[static_cast<size_t>(state)]; }

std::string abi() { return fmt::format("{}.{}", ASSAY_ABI_MAJOR, ASSAY_ABI_MINOR); }

auto count(const std::vector<Finding>& findings, State state) {
  return std::count_if(findings.begin(), findings.end(), [state](const Finding& one) { return one.state == state; });
}

}  // namespace

std::vector<Finding> examine(const DoctorInput& input) {
  std::vector<Finding> findings;
  examine_plugins(input, &findings);
  examine_libraries(input, &findings);
  examine_machine(input, &findings);
  return findings;
}

bool healthy(const std::vector<Finding>& findings) { return count(findings, State::kProblem) == 0; }

std::string to_text(const std::vector<Finding>& findings, const std::string& version) {
  std::string lines = fmt::format("assay {}, plugin ABI {}\n", version, abi());
  std::string section;
  for (const Finding& one : findings) {
    if (one.section != section) lines += fmt::format("{}\n", section = one.section);
    lines += fmt::format("  {:<8} {}: {}\n", word(one.state), text::printable(one.name), text::printable(one.text));
    if (!one.remedy.empty()) lines += fmt::format("           -> {}\n", text::printable(one.remedy));
  }
  return lines + fmt::format("{} ok, {} warnings, {} problems\n", count(findings, State::kOk),
                             count(findings, State::kWarning), count(findings, State::kProblem));
}

std::string to_json(const std::vector<Finding>& findings, const std::string& version) {
  using Json = nlohmann::ordered_json;
  Json list = Json::array();
  for (const Finding& one : findings) {
    list.push_back(Json{{"section", one.section},
                        {"name", one.name},
                        {"state", word(one.state)},
                        {"text", one.text},
                        {"remedy", one.remedy}});
  }
  return Json{{"version", version}, {"abi", abi()}, {"healthy", healthy(findings)}, {"findings", list}}.dump(
             2, ' ', false, Json::error_handler_t::replace) +
         "\n";
}

}  // namespace assay::doctor
