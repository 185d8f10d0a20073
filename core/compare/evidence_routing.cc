#include <algorithm>
#include <map>

#include "core/compare/evidence.h"

namespace assay::compare {
namespace {

std::vector<uint16_t> experts_at(const Routing& routing, size_t row, size_t layer) {
  const auto begin = routing.experts.begin() + static_cast<ptrdiff_t>((row * routing.layers + layer) * routing.topk);
  std::vector<uint16_t> experts(begin, begin + static_cast<ptrdiff_t>(routing.topk));
  std::sort(experts.begin(), experts.end());
  return experts;
}

// Position in the sequence -> row.
std::map<int64_t, size_t> rows_of(const Routing& routing, size_t tokens) {
  std::map<int64_t, size_t> rows;
  for (size_t row = 0; row < routing.tokens; ++row) {
    const auto position = routing.positions.empty() ? static_cast<int64_t>(row) : routing.positions[row];
    if (position < static_cast<int64_t>(tokens)) rows.emplace(position, row);
  }
  return rows;
}

}  // namespace

std::optional<RoutingEvidence> routing_evidence(const RequestRecord& golden, const RequestRecord& result,
                                                size_t tokens) {
  if (!golden.routing || !result.routing) return std::nullopt;
  const Routing& a = *golden.routing;
  const Routing& b = *result.routing;
  if (a.layers != b.layers || a.topk != b.topk) return std::nullopt;
  RoutingEvidence evidence;
  evidence.by_layer.assign(a.layers, 0);
  const std::map<int64_t, size_t> rows = rows_of(b, tokens);
  for (const auto& [position, row] : rows_of(a, tokens)) {
    const auto other = rows.find(position);
    if (other == rows.end()) continue;
    for (size_t layer = 0; layer < a.layers; ++layer) {
      ++evidence.compared;
      RoutingDifference difference;
      difference.token = position;
      difference.layer = static_cast<int64_t>(layer);
      difference.golden = experts_at(a, row, layer);
      difference.result = experts_at(b, other->second, layer);
      if (difference.golden == difference.result) continue;
      if (evidence.differing++ == 0) evidence.first_layer = static_cast<int64_t>(layer);
      ++evidence.by_layer[layer];
      if (evidence.first.size() == kMaxRoutingDifferences) continue;
      if (!b.margins.empty()) difference.margin = b.margins[other->second * b.layers + layer];
      evidence.first.push_back(std::move(difference));
    }
  }
  if (evidence.compared == 0) return std::nullopt;
  return evidence;
}

}  // namespace assay::compare
