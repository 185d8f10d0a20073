#include "plugins/comparators/performance/collect.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <span>

#include "assay/sdk.hpp"

namespace assay::performance {
namespace {

constexpr std::string_view kSides[] = {"golden", "result"};

// Finite and above 0, all of them, and at least one.
Fault check(std::string_view side, std::string_view metric, const std::vector<double>& values) {
  if (values.empty()) return {false, fmt::format("{} of the {} is empty", metric, side)};
  const auto bad =
      std::find_if(values.begin(), values.end(), [](double value) { return !std::isfinite(value) || value <= 0; });
  if (bad == values.end()) return {};
  return {false, fmt::format("{} of the {} is {} (value {} of {}), expected a finite number above 0", metric, side,
                             *bad, bad - values.begin(), values.size())};
}

const assay_quantity* find(const assay_quantity* quantities, size_t count, std::string_view name) {
  const std::span<const assay_quantity> all(quantities, count);
  const auto found =
      std::find_if(all.begin(), all.end(), [&](const assay_quantity& q) { return sdk::text(q.name) == name; });
  return found == all.end() ? nullptr : &*found;
}

// Fills `all` of both sides from the requests; `take` appends a record's values and returns false where it has none.
template <class Take>
Sides collect_requests(const assay_judgement& judgement, Take take) {
  Sides sides;
  const std::string_view metric = sdk::text(judgement.metric);
  if (judgement.pair_count == 0) sides.fault = {true, fmt::format("golden and result hold no request with {}", metric)};
  for (size_t side = 0; side < 2 && sides.fault.message.empty(); ++side) {
    Side& values = side == 0 ? sides.golden : sides.result;
    std::vector<std::string_view> lacking;
    for (size_t i = 0; i < judgement.pair_count; ++i) {
      const assay_pair& pair = judgement.pairs[i];
      if (!take(side == 0 ? *pair.reference : *pair.candidate, values)) lacking.push_back(sdk::text(pair.id));
    }
    if (!lacking.empty()) {
      sides.fault = {true, fmt::format("the {} lacks {} in {} of {} requests, first in {}", kSides[side], metric,
                                       lacking.size(), judgement.pair_count, lacking.front())};
    } else {
      sides.fault = check(kSides[side], metric, values.all);
    }
  }
  return sides;
}

}  // namespace

Sides collect_quantity(const assay_judgement& judgement) {
  Sides sides;
  const std::string_view metric = sdk::text(judgement.metric);
  const assay_quantity* golden = find(judgement.reference_quantities, judgement.reference_quantity_count, metric);
  const assay_quantity* result = find(judgement.candidate_quantities, judgement.candidate_quantity_count, metric);
  if (golden == nullptr || result == nullptr) {
    const bool both = golden == nullptr && result == nullptr;
    sides.fault = {true, fmt::format("{} {} {}",
                                     both                ? "golden and result"
                                     : golden == nullptr ? "the golden"
                                                         : "the result",
                                     both ? "lack" : "lacks", metric)};
    return sides;
  }
  for (size_t side = 0; side < 2 && sides.fault.message.empty(); ++side) {
    Side& values = side == 0 ? sides.golden : sides.result;
    const std::span<const double> recorded = sdk::doubles((side == 0 ? golden : result)->values);
    values.all.assign(recorded.begin(), recorded.end());
    sides.fault = check(kSides[side], metric, values.all);
    values.judged = values.all;
    if (values.all.size() > 1) {
      values.judged.erase(values.judged.begin());
    } else {
      values.note = fmt::format("the {} holds one value of {}: it is judged as it is, no warm-up is dropped",
                                kSides[side], metric);
    }
  }
  return sides;
}

Sides collect_tpot(const assay_judgement& judgement) {
  Sides sides = collect_requests(judgement, [](const assay_record& record, Side& side) {
    if ((record.has & ASSAY_HAS_TPOT) == 0 || !ASSAY_KNOWS(&record, tpot)) return false;
    const std::span<const double> values = sdk::doubles(record.tpot);
    side.all.insert(side.all.end(), values.begin(), values.end());
    if (!values.empty()) side.judged.insert(side.judged.end(), values.begin() + 1, values.end());
    return true;
  });
  for (size_t side = 0; side < 2 && sides.fault.message.empty(); ++side) {
    if (!(side == 0 ? sides.golden : sides.result).judged.empty()) continue;
    sides.fault = {true, fmt::format("no request of the {} has a second generated token, and the first one's tpot "
                                     "holds the prefill",
                                     kSides[side])};
  }
  return sides;
}

Sides collect_latency(const assay_judgement& judgement) {
  return collect_requests(judgement, [](const assay_record& record, Side& side) {
    if ((record.has & ASSAY_HAS_LATENCY) == 0 || !ASSAY_KNOWS(&record, latency)) return false;
    side.all.push_back(record.latency);
    side.judged.push_back(record.latency);
    return true;
  });
}

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  if (values.size() % 2 == 1) return *middle;
  return *std::max_element(values.begin(), middle) / 2 + *middle / 2;
}

}  // namespace assay::performance
