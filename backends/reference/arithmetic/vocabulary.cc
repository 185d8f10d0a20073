#include "backends/reference/arithmetic/vocabulary.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>

#include "backends/reference/arithmetic/dot.h"
#include "backends/reference/arithmetic/elementary.h"
#include "backends/reference/arithmetic/precise.h"
#include "backends/reference/arithmetic/sampling.h"

namespace assay::arithmetic {

Segment scan_segment(std::span<const float> logits, size_t begin, float* scratch) {
  size_t best = 0;
  for (size_t i = 1; i < logits.size(); ++i) {
    if (logits[i] > logits[best]) best = i;
  }
  for (size_t i = 0; i < logits.size(); ++i) scratch[i] = exponential<Single>(logits[i] - logits[best]);
  return {logits[best], sum(scratch, logits.size()), static_cast<int32_t>(begin + best)};
}

RowSummary summarise(std::span<const Segment> segments) {
  RowSummary row{segments[0].top, 0, segments[0].argmax};
  for (const Segment& segment : segments) {
    if (segment.top > row.top) {
      row.top = segment.top;
      row.argmax = segment.argmax;
    }
  }
  float total = 0;
  for (const Segment& segment : segments) {
    total = std::fma(segment.total, exponential<Single>(segment.top - row.top), total);
  }
  row.log_total = log_of_sum(total);
  return row;
}

int32_t rank_of(std::span<const float> logits, int32_t id) {
  const auto own = static_cast<size_t>(id);
  const float value = logits[own];
  int32_t rank = 0;
  for (size_t i = 0; i < own; ++i) rank += logits[i] >= value;
  for (size_t i = own + 1; i < logits.size(); ++i) rank += logits[i] > value;
  return rank;
}

void top_ids(std::span<const float> logits, size_t n, int32_t* ids) {
  std::vector<int32_t> order(logits.size());
  std::iota(order.begin(), order.end(), 0);
  // NaN sorts last, so that the comparison stays a strict weak order.
  const auto before = [&](int32_t a, int32_t b) {
    const float x = logits[static_cast<size_t>(a)];
    const float y = logits[static_cast<size_t>(b)];
    if (std::isnan(x) || std::isnan(y)) return std::isnan(x) == std::isnan(y) ? a < b : std::isnan(y);
    return x > y || (x == y && a < b);
  };
  std::partial_sort(order.begin(), order.begin() + static_cast<ptrdiff_t>(n), order.end(), before);
  std::copy_n(order.begin(), n, ids);
}

void write_facts(const RowSummary& summary, const TargetFacts& target, const assay_run& run, size_t row) {
  const assay_run_output& out = run.output;
  const bool wanted = run.targets != nullptr && run.targets[row] >= 0;
  if (wanted && out.target_logprobs != nullptr) out.target_logprobs[row] = summary.logprob(target.logit);
  if (wanted && out.target_ranks != nullptr) out.target_ranks[row] = target.rank;
  if (out.argmax != nullptr) out.argmax[row] = summary.argmax;
  if (out.argmax_logprobs != nullptr) out.argmax_logprobs[row] = summary.logprob(summary.top);
}

void write_row(std::span<const float> logits, const RowSummary& summary, const assay_run& run, size_t row) {
  const assay_run_output& out = run.output;
  const int32_t target = run.targets != nullptr ? run.targets[row] : -1;
  TargetFacts facts;
  if (target >= 0) facts.logit = logits[static_cast<size_t>(target)];
  if (target >= 0 && out.target_ranks != nullptr) facts.rank = rank_of(logits, target);
  write_facts(summary, facts, run, row);
  const auto n = static_cast<size_t>(std::max(run.top_n, 0));
  if (n > 0 && (out.top_ids != nullptr || out.top_logprobs != nullptr)) {
    std::vector<int32_t> ids(n);
    top_ids(logits, n, ids.data());
    for (size_t i = 0; i < n; ++i) {
      if (out.top_ids != nullptr) out.top_ids[row * n + i] = ids[i];
      if (out.top_logprobs != nullptr) {
        out.top_logprobs[row * n + i] = summary.logprob(logits[static_cast<size_t>(ids[i])]);
      }
    }
  }
  if (out.logits != nullptr) std::memcpy(out.logits + row * logits.size(), logits.data(), logits.size_bytes());
}

int32_t write_sample(std::span<const float> logits, const RowSummary& summary, const assay_run& run) {
  const int32_t token =
      run.sampling.top_k == 1 ? summary.argmax : sample_token(logits, run.sampling, uint64_t{run.start} + run.count);
  *run.output.sampled = token;
  if (run.output.sampled_logprob != nullptr) {
    *run.output.sampled_logprob = summary.logprob(logits[static_cast<size_t>(token)]);
  }
  return token;
}

}  // namespace assay::arithmetic
