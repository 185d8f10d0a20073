#include "core/compare/routing_tie.h"

#include <algorithm>
#include <cmath>

#include "core/compare/evidence.h"
#include "core/compare/reanchoring.h"
#include "core/compare/ulp.h"

namespace assay::compare {
namespace {

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

// Median of |a - b| over [begin, end); nothing there: 0.
double median_difference(const std::vector<double>& a, const std::vector<double>& b, size_t begin, size_t end) {
  std::vector<double> differences;
  for (size_t i = begin; i < end; ++i) differences.push_back(std::fabs(a[i] - b[i]));
  return differences.empty() ? 0 : median(std::move(differences));
}

// Typical magnitude of a logit; 0: not known.
double usual_logit(const RerunRequest& again) {
  std::vector<double> logits;
  for (const RerunPosition& position : again.positions) {
    if (position.golden_logit) logits.push_back(std::fabs(*position.golden_logit));
  }
  return logits.empty() ? 0 : median(std::move(logits));
}

bool agrees_elsewhere(const RerunRequest& again, const RequestRecord& golden, int mantissa) {
  const std::vector<double> a = joined_logprobs(golden);
  const std::vector<double> b = joined_logprobs(*again.record);
  const double logit = usual_logit(again);
  if (a.empty() || a.size() != b.size() || a.size() < again.golden_tokens.size() || logit == 0) return false;
  const double limit = kUlpsOtherDtype * ulp(mantissa, logit);
  const size_t prompt = a.size() - again.golden_tokens.size();
  return median_difference(a, b, 0, prompt) <= limit && median_difference(a, b, prompt, a.size()) <= 2 * limit;
}

// First token of the sequence whose routing is a tie; `tokens`: none.
size_t first_tie(const Routing& routing, double limit) {
  for (size_t token = 0; token < routing.tokens; ++token) {
    for (size_t layer = 0; layer < routing.layers; ++layer) {
      if (std::fabs(routing.margins[token * routing.layers + layer]) <= limit) return token;
    }
  }
  return routing.tokens;
}

}  // namespace

std::vector<bool> routing_ties(const RerunRequest& again, const RequestRecord& golden, const TieRule& rule) {
  std::vector<bool> found(again.positions.size(), false);
  if (!again.record || !again.record->routing || again.record->routing->margins.empty()) return found;
  const Routing& routing = *again.record->routing;
  if (!routing.positions.empty() || routing.tokens + 1 < again.golden_tokens.size()) return found;
  if (!agrees_elsewhere(again, golden, rule.mantissa)) return found;
  constexpr double kBelowOne = 0.5;  // scores are probabilities
  size_t from = first_tie(routing, rule.ulps * ulp(rule.mantissa, kBelowOne));
  if (const auto seen = routing_evidence(golden, *again.record, routing.tokens)) {
    if (seen->differing == 0) return found;
    from = std::max(from, static_cast<size_t>(seen->first.front().token));
  }
  const size_t prompt = routing.tokens + 1 - again.golden_tokens.size();
  for (size_t i = 0; i < found.size(); ++i) {
    const std::optional<int64_t> rank = again.positions[i].golden_rank;
    found[i] = from <= prompt - 1 + i && rank && *rank < kMostRoutingTieRank;  // token prompt - 1 + i gives position i
  }
  return found;
}

}  // namespace assay::compare
