#include "plugins/engines/faulty/fault.h"

#include <array>
#include <utility>

namespace assay::engines {
namespace {

constexpr std::array<std::pair<Fault, std::string_view>, 13> kNames = {{
    {Fault::kNone, "none"},
    {Fault::kStaleKv, "stale_kv"},
    {Fault::kOffByOnePosition, "off_by_one_position"},
    {Fault::kEodKept, "eod_kept"},
    {Fault::kWrongLogprob, "wrong_logprob"},
    {Fault::kNanLogprob, "nan_logprob"},
    {Fault::kTruncatedText, "truncated_text"},
    {Fault::kDroppedRequest, "dropped_request"},
    {Fault::kSwappedRequests, "swapped_requests"},
    {Fault::kCrash, "crash"},
    {Fault::kExit, "exit"},
    {Fault::kHang, "hang"},
    {Fault::kLeakMemory, "leak_memory"},
}};

}  // namespace

std::string_view to_string(Fault fault) {
  for (const auto& [known, name] : kNames) {
    if (known == fault) return name;
  }
  return "";
}

std::optional<Fault> parse_fault(std::string_view name) {
  for (const auto& [fault, known] : kNames) {
    if (known == name) return fault;
  }
  return std::nullopt;
}

const std::vector<Fault>& all_faults() {
  static const std::vector<Fault> all = [] {
    std::vector<Fault> faults;
    faults.reserve(kNames.size());
    for (const auto& [fault, name] : kNames) faults.push_back(fault);
    return faults;
  }();
  return all;
}

}  // namespace assay::engines
