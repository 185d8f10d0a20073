#include "plugins/comparators/routing_indices/compare_sets.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <limits>
#include <span>
#include <unordered_map>
#include <utility>

#include "core/compare/divergence.h"

namespace assay::routing {
namespace {

// The rows of one side and the tokens they belong to.
class Rows {
 public:
  explicit Rows(const assay_record& record) : record_(record), listed_(record.routing_positions.size > 0) {}

  bool listed() const { return listed_; }
  size_t size() const { return record_.routing_tokens; }
  int64_t token(size_t row) const {
    return listed_ ? int64_t{record_.routing_positions.data[row]} : static_cast<int64_t>(row);
  }

  // False and a message: a list of positions that is none.
  bool index(std::string_view side, Fault* fault) {
    if (!listed_) return true;
    if (record_.routing_positions.size != size()) {
      fault->message = fmt::format("routing of the {} has {} rows and {} positions, expected one each", side, size(),
                                   record_.routing_positions.size);
      return false;
    }
    for (size_t row = 0; row < size(); ++row) {
      const bool fresh = token(row) >= 0 && rows_.try_emplace(token(row), row).second;
      if (fresh) continue;
      fault->token = token(row);
      fault->message = fmt::format("routing of the {}: token {} is {}", side, token(row),
                                   token(row) < 0 ? "no position" : "listed twice");
      return false;
    }
    return true;
  }

  std::optional<size_t> row_of(int64_t token) const {
    if (!listed_)
      return token < static_cast<int64_t>(size()) ? std::optional(static_cast<size_t>(token)) : std::nullopt;
    const auto found = rows_.find(token);
    return found == rows_.end() ? std::nullopt : std::optional(found->second);
  }

  std::span<const uint16_t> set(size_t row, size_t layer) const {
    return {record_.routing + (row * record_.moe_layers + layer) * record_.moe_topk, record_.moe_topk};
  }

  // Below 0 the router left a better expert out: that far from a tie, on the other side.
  std::optional<double> margin(size_t row, size_t layer) const {
    if ((record_.has & ASSAY_HAS_ROUTING_MARGINS) == 0) return std::nullopt;
    const double margin = double{record_.routing_margins[row * record_.moe_layers + layer]};
    return std::isfinite(margin) ? std::optional(std::fabs(margin)) : std::nullopt;
  }

 private:
  const assay_record& record_;
  bool listed_;
  std::unordered_map<int64_t, size_t> rows_;  // token -> row, where they are listed
};

// A set of experts as bits, so that equal sets are told in one pass over each, in whatever order they are.
class Marks {
 public:
  // False when an expert is there already, that is, twice in the set.
  bool add(uint16_t expert) {
    uint64_t& word = words_[expert / 64];
    const uint64_t bit = uint64_t{1} << (expert % 64);
    const bool fresh = (word & bit) == 0;
    word |= bit;
    return fresh;
  }
  // False when the expert is not there.
  bool take(uint16_t expert) {
    uint64_t& word = words_[expert / 64];
    const uint64_t bit = uint64_t{1} << (expert % 64);
    const bool there = (word & bit) != 0;
    word &= ~bit;
    return there;
  }

 private:
  std::array<uint64_t, 1024> words_{};  // a bit for each uint16_t
};

std::vector<uint16_t> sorted(std::span<const uint16_t> set) {
  std::vector<uint16_t> experts(set.begin(), set.end());
  std::sort(experts.begin(), experts.end());
  return experts;
}

bool has_twice(const std::vector<uint16_t>& ascending) {
  return std::adjacent_find(ascending.begin(), ascending.end()) != ascending.end();
}

size_t exchanged(std::span<const uint16_t> a, std::span<const uint16_t> b) {
  std::vector<uint16_t> only;
  std::set_difference(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(only));
  return only.size();
}

std::optional<std::string> shape_fault(const assay_record& golden, const assay_record& result) {
  for (const auto& [record, side] : {std::pair(&golden, "golden"), std::pair(&result, "result")}) {
    if (record->routing_tokens * record->moe_layers * record->moe_topk > 0) continue;
    return fmt::format("routing_indices of the {} is empty: shape ({}, {}, {})", side, record->routing_tokens,
                       record->moe_layers, record->moe_topk);
  }
  if (golden.moe_layers == result.moe_layers && golden.moe_topk == result.moe_topk) return std::nullopt;
  return fmt::format("routing_indices differ in shape (tokens, layers, topk): golden ({}, {}, {}), result ({}, {}, {})",
                     golden.routing_tokens, golden.moe_layers, golden.moe_topk, result.routing_tokens,
                     result.moe_layers, result.moe_topk);
}

class Comparer {
 public:
  Comparer(const Rows& golden, const Rows& result, double tolerance, Comparison* comparison, Fault* fault)
      : golden_(golden),
        result_(result),
        tolerance_(tolerance),
        first_tie_(comparison->by_layer.size(), std::numeric_limits<int64_t>::max()),
        comparison_(*comparison),
        fault_(*fault) {}

  bool row(size_t golden_row, size_t result_row) {
    const int64_t token = golden_.token(golden_row);
    for (size_t layer = 0; layer < comparison_.by_layer.size(); ++layer) {
      ++comparison_.compared;
      const std::span<const uint16_t> golden = golden_.set(golden_row, layer);
      const std::span<const uint16_t> result = result_.set(result_row, layer);
      if (same(golden, result)) continue;
      Difference difference{token, layer, sorted(golden), sorted(result), result_.margin(result_row, layer)};
      if (has_twice(difference.golden)) return twice("golden", token, layer);
      if (has_twice(difference.result)) return twice("result", token, layer);
      add(std::move(difference));
    }
    return true;
  }

  // To be called after the last row, as rows may stand in any order.
  void tell_what_follows() {
    std::vector<int64_t> before(first_tie_.size(), std::numeric_limits<int64_t>::max());  // first tie in lower layers
    for (size_t layer = 1; layer < before.size(); ++layer) {
      before[layer] = std::min(before[layer - 1], first_tie_[layer - 1]);
    }
    for (const auto& [token, layer] : others_)
      ++(before[layer] <= token ? comparison_.following : comparison_.unexplained);
  }

 private:
  // Equal as sets, no expert twice in either.
  bool same(std::span<const uint16_t> golden, std::span<const uint16_t> result) {
    bool fresh = true;
    for (const uint16_t expert : golden) fresh = marks_.add(expert) && fresh;
    size_t taken = 0;
    for (const uint16_t expert : result) taken += marks_.take(expert) ? 1U : 0U;
    if (fresh && taken == golden.size()) return true;
    for (const uint16_t expert : golden) marks_.take(expert);
    return false;
  }

  bool twice(std::string_view side, int64_t token, size_t layer) {
    fault_.token = token;
    fault_.message =
        fmt::format("routing_indices of the {} name an expert twice at token {} layer {}", side, token, layer);
    return false;
  }

  void add(Difference difference) {
    ++comparison_.differing;
    ++comparison_.by_layer[difference.layer];
    const bool one = difference.margin && exchanged(difference.golden, difference.result) == 1;
    comparison_.tolerable = comparison_.tolerable && one;
    if (difference.margin) comparison_.largest_margin = std::max(comparison_.largest_margin, *difference.margin);
    if (one && *difference.margin <= tolerance_) {
      ++comparison_.near_ties;
      first_tie_[difference.layer] = std::min(first_tie_[difference.layer], difference.token);
    } else {
      others_.emplace_back(difference.token, difference.layer);
    }
    const auto place = [](const Difference& d) { return std::pair(d.token, d.layer); };
    if (!comparison_.first || place(difference) < place(*comparison_.first)) comparison_.first = std::move(difference);
  }

  const Rows& golden_;
  const Rows& result_;
  double tolerance_;
  std::vector<int64_t> first_tie_;                  // (layers) token
  std::vector<std::pair<int64_t, size_t>> others_;  // (token, layer) of differing sets that are no near-ties
  Comparison& comparison_;
  Fault& fault_;
  Marks marks_;  // empty between calls
};

// P, from the surest of what the record holds: prompt ids, (P - 1 + G) logprobs, (P + G - 1) rows of routing.
std::optional<size_t> prompt_length(const assay_record& record) {
  if ((record.has & ASSAY_HAS_PROMPT_IDS) != 0) return record.prompt_ids.size;
  const size_t generated = record.tokens.size;
  if ((record.has & ASSAY_HAS_LOGPROBS) != 0 && record.logprobs.size > generated) {
    return record.logprobs.size + 1 - generated;
  }
  if (record.routing_positions.size == 0 && record.routing_tokens >= generated) {
    return record.routing_tokens + 1 - generated;
  }
  return std::nullopt;
}

}  // namespace

std::optional<Split> split_of(const assay_record& golden, const assay_record& result) {
  if ((golden.has & result.has & ASSAY_HAS_TOKENS) == 0) return std::nullopt;
  const std::optional<size_t> token = compare::first_divergent_token(golden.tokens, result.tokens);
  if (!token) return std::nullopt;
  std::optional<size_t> prompt = prompt_length(golden);
  if (!prompt) prompt = prompt_length(result);
  if (!prompt) return Split{*token, std::nullopt};
  return Split{*token, static_cast<int64_t>(*prompt + *token)};
}

bool compare_sets(const assay_pair& pair, std::optional<int64_t> end, double tolerance, Comparison* comparison,
                  Fault* fault) {
  const assay_record& golden = *pair.reference;
  const assay_record& result = *pair.candidate;
  if (std::optional<std::string> wrong = shape_fault(golden, result)) {
    fault->message = *std::move(wrong);
    return false;
  }
  Rows reference(golden);
  Rows candidate(result);
  if (!reference.index("golden", fault) || !candidate.index("result", fault)) return false;
  if (!end && !reference.listed() && !candidate.listed() && reference.size() != candidate.size()) {
    fault->message = fmt::format("routing_indices differ in length: golden {} tokens, result {}", reference.size(),
                                 candidate.size());
    return false;
  }
  comparison->by_layer.assign(golden.moe_layers, 0);
  Comparer comparer(reference, candidate, tolerance, comparison, fault);
  for (size_t row = 0; row < reference.size(); ++row) {
    const int64_t token = reference.token(row);
    if (end && token >= *end) continue;
    const std::optional<size_t> found = candidate.row_of(token);
    if (!found) {
      fault->missing = candidate.listed();
      fault->token = token;
      fault->message = fmt::format("the golden holds the routing of token {}, the result {}", token,
                                   candidate.listed() ? "does not" : fmt::format("has {} tokens", candidate.size()));
      return false;
    }
    if (!comparer.row(row, *found)) return false;
  }
  comparer.tell_what_follows();
  return true;
}

}  // namespace assay::routing
