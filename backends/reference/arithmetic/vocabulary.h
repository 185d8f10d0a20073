// What is said about one row of logits: log-softmax, ranks, top-n. The definition of the sums is here; a backend may
// compute the segments with its own vectors and in parallel, the bits stay the same.
//
// The vocabulary is cut into segments of 4096 ids. Per segment: m = max, l = sum of exp(logit - m) in the order of
// dot.h. Ascending over segments: M = max m, L = fma(l, exp(m - M), L). logprob(i) = (logit_i - M) - log(L).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "assay/plugin_abi.h"

namespace assay::arithmetic {

inline constexpr size_t kSegment = 4096;

struct Segment {
  float top = 0;       // largest logit of the segment
  float total = 0;     // sum of exp(logit - top)
  int32_t argmax = 0;  // id within the vocabulary, the lowest among equals
};

// The obvious version, for one segment that begins at id `begin`; scratch: logits.size() floats.
Segment scan_segment(std::span<const float> logits, size_t begin, float* scratch);

struct RowSummary {
  float top = 0;
  float log_total = 0;
  int32_t argmax = 0;
  float logprob(float logit) const { return (logit - top) - log_total; }
};

RowSummary summarise(std::span<const Segment> segments);

// Number of ids with a larger logit, or an equal one and a lower id.
int32_t rank_of(std::span<const float> logits, int32_t id);

// Ids of the n largest, descending logit, ties to the lower id. n <= logits.size().
void top_ids(std::span<const float> logits, size_t n, int32_t* ids);

// What is said about the target of a row; anything where the row has none.
struct TargetFacts {
  float logit = 0;
  int32_t rank = 0;
};

// Writes what needs no other logit: target_logprobs, target_ranks, argmax and argmax_logprobs of row `row`.
void write_facts(const RowSummary& summary, const TargetFacts& target, const assay_run& run, size_t row);

// Writes row `row` of `output` (all but routing, sampled and sampled_logprob) from its logits and summary.
void write_row(std::span<const float> logits, const RowSummary& summary, const assay_run& run, size_t row);

// Draws from the last row and writes sampled and sampled_logprob. Returns the token.
int32_t write_sample(std::span<const float> logits, const RowSummary& summary, const assay_run& run);

}  // namespace assay::arithmetic
