#include "tools/self_test/kill_table.h"

#include <fmt/format.h>

#include <map>
#include <nlohmann/json.hpp>

#include "core/golden/text.h"

namespace assay::self_test {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kMostTrials = 3;  // shown of a fault
constexpr size_t kReason = 200;    // code points

std::map<std::string, size_t> verdicts_of(const FaultReport& fault) {
  std::map<std::string, size_t> counts;
  for (const Trial& trial : fault.trials) ++counts[std::string(to_string(trial.verdict))];
  return counts;
}

std::string verdicts_text(const FaultReport& fault) {
  std::string text;
  for (const auto& [name, count] : verdicts_of(fault)) {
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", count, name);
  }
  return text;
}

std::string one_line(const std::string& reason) { return text::printable(text::prefix(reason, kReason)); }

std::string trouble_text(const FaultReport& fault) {
  std::string text;
  size_t shown = 0;
  size_t hidden = 0;
  for (const Trial& trial : fault.trials) {
    if (trial.fate == Fate::kKilled) continue;
    if (shown++ >= kMostTrials) {
      ++hidden;
      continue;
    }
    text += fmt::format("- {} {} seed {}: {}: {}\n", to_string(trial.fate), trial.fault, trial.seed,
                        to_string(trial.verdict), one_line(trial.reason));
    if (!trial.place.empty()) text += fmt::format("  planted: {}\n", one_line(trial.place));
    if (!trial.reproduce.empty()) text += fmt::format("  again: {}\n", trial.reproduce);
  }
  if (hidden > 0) text += fmt::format("- and {} more of {}\n", hidden, fault.fault.name);
  return text;
}

std::string_view state_of(const ControlReport& control) {
  if (control.absent) return "not on this machine";
  return control.alarm() ? "ALARM" : "quiet";
}

Json trial_json(const Trial& trial) {
  return {{"seed", trial.seed},   {"fate", to_string(trial.fate)}, {"verdict", to_string(trial.verdict)},
          {"place", trial.place}, {"reason", trial.reason},        {"reproduce", trial.reproduce}};
}

Json fault_json(const FaultReport& report) {
  Json others = Json::array();
  for (const Trial& trial : report.trials) {
    if (trial.fate != Fate::kKilled) others.push_back(trial_json(trial));
  }
  Json expected = Json::array();
  for (const Verdict verdict : report.fault.verdicts) expected.push_back(to_string(verdict));
  return {{"name", report.fault.name},     {"family", report.fault.family},
          {"what", report.fault.what},     {"metric", report.fault.metric},
          {"metrics", report.metrics},     {"expected", expected},
          {"seeds", report.trials.size()}, {"killed", report.count(Fate::kKilled)},
          {"places", report.places()},     {"verdicts", verdicts_of(report)},
          {"not_killed", others}};
}

}  // namespace

std::string table_text(const SelfTestReport& report) {
  std::string text =
      fmt::format("| {:<23} | {:<23} | seeds | killed | places | {:<28} |\n", "fault", "noticed by", "verdicts");
  text += fmt::format("|{:-<25}|{:-<25}|------:|-------:|-------:|{:-<30}|\n", "", "", "");
  std::string trouble;
  for (const FaultReport& fault : report.faults) {
    text += fmt::format("| {:<23} | {:<23} | {:>5} | {:>6} | {:>6} | {:<28} |\n", fault.fault.name, fault.fault.metric,
                        fault.trials.size(), fault.count(Fate::kKilled), fault.places(), verdicts_text(fault));
    trouble += trouble_text(fault);
  }
  text += fmt::format("\n| {:<23} | {:<42} | {:<19} | {:<14} |\n", "benign change", "", "", "verdict");
  text += fmt::format("|{:-<25}|{:-<44}|{:-<21}|{:-<16}|\n", "", "", "", "");
  for (const ControlReport& control : report.controls) {
    text += fmt::format("| {:<23} | {:<42} | {:<19} | {:<14} |\n", control.name, control.what, state_of(control),
                        control.absent ? "-" : to_string(control.verdict));
    if (!control.alarm()) continue;
    trouble += fmt::format("- alarm {}: {}: {}\n  again: {}\n", control.name, to_string(control.verdict),
                           one_line(control.reason), control.reproduce);
  }
  if (!trouble.empty()) text += "\n" + trouble;
  const double rate =
      report.trials() > 0 ? 100.0 * static_cast<double>(report.killed()) / static_cast<double>(report.trials()) : 0.0;
  return text +
         fmt::format("\n{} of {} faulty runs killed ({:.1f} %), {} faults; {} alarms of {} benign changes; {:.1f} s\n",
                     report.killed(), report.trials(), rate, report.faults.size(), report.alarms(),
                     report.controls.size(), report.seconds);
}

std::string table_json(const SelfTestReport& report) {
  Json faults = Json::array();
  for (const FaultReport& fault : report.faults) faults.push_back(fault_json(fault));
  Json controls = Json::array();
  for (const ControlReport& control : report.controls) {
    controls.push_back({{"name", control.name},
                        {"what", control.what},
                        {"verdict", to_string(control.verdict)},
                        {"alarm", control.alarm()},
                        {"absent", control.absent},
                        {"reason", control.reason},
                        {"reproduce", control.reproduce}});
  }
  const Json json = {{"passed", report.passed()}, {"trials", report.trials()}, {"killed", report.killed()},
                     {"alarms", report.alarms()}, {"seconds", report.seconds}, {"faults", faults},
                     {"controls", controls}};
  return json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace assay::self_test
