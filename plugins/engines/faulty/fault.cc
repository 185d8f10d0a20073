#include "plugins/engines/faulty/fault.h"

#include <array>

namespace assay::engines {
namespace {

constexpr FaultInfo kTable[] = {
#include "plugins/engines/faulty/fault_table.inc"
};
constexpr FaultInfo kNoFault = {Fault::kNone, Family::kNone, "none", "", "", "", "the engine inside as it is"};

}  // namespace

std::string_view to_string(Family family) {
  constexpr std::array<std::string_view, 11> kNames = {"none",    "request", "backend", "arithmetic", "tokens", "text",
                                                       "numbers", "set",     "cost",    "condition",  "process"};
  return kNames.at(static_cast<size_t>(family));
}

std::span<const FaultInfo> fault_table() { return kTable; }

const FaultInfo& info_of(Fault fault) {
  for (const FaultInfo& info : kTable) {
    if (info.fault == fault) return info;
  }
  return kNoFault;
}

std::string_view to_string(Fault fault) { return info_of(fault).name; }

std::optional<Fault> parse_fault(std::string_view name) {
  if (name == kNoFault.name) return Fault::kNone;
  for (const FaultInfo& info : kTable) {
    if (info.name == name) return info.fault;
  }
  return std::nullopt;
}

const std::vector<Fault>& all_faults() {
  static const std::vector<Fault> all = [] {
    std::vector<Fault> faults = {Fault::kNone};
    for (const FaultInfo& info : kTable) faults.push_back(info.fault);
    return faults;
  }();
  return all;
}

}  // namespace assay::engines
