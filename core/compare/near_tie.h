// When two candidates of one position tie: the rule of DESIGN 7 in numbers. Pure functions, safe from any thread.
//
// Both logprobs come from one run, so that their difference is the difference of two logits of that run.
//
// Same arithmetic on both sides: a logit is rounded to its dtype once, an error of half a ULP; a sum taken in another
// order may round to the neighbour. Two candidates that are equal in one run may then be up to 2 ULP apart in the
// other: that is the limit.
//
// Other arithmetic (golden bf16, run fp32, or the reverse): every operator of the coarser side rounds, not the last one
// alone. A logit is then off by the sum of many roundings. A gap of two logits holds two such errors; kUlpsOtherDtype
// bounds it (docs/verdicts.md tells how it was measured).
#pragma once

#include <optional>
#include <string>

namespace assay::compare {

inline constexpr double kUlpsSameDtype = 2;
inline constexpr double kUlpsOtherDtype = 8;

struct TieRule {
  int mantissa = 24;             // of the coarser dtype of the two sides
  double ulps = kUlpsSameDtype;  // gaps up to here tie ...
  double noise = 0;              // ... or up to here, nats: noise recorded in the golden; 0: none
  std::string arithmetic;        // "arithmetic differs: golden bf16, run fp32"; empty: it does not, or is not known
};

// `golden`, `run`: bits of mantissa of the logits of either side; nullopt: not known. Nothing known at all: fp32, the
// strictest.
TieRule tie_rule(std::optional<int> golden, std::optional<int> run, double noise);

// A gap between two logprobs of one position.
struct Gap {
  double nats = 0;  // >= 0
  double ulps = 0;  // of the rule's dtype at the larger logit's magnitude
  bool near_tie = false;
};

// `a`, `b`: the logprobs; `logit_a`: raw logit of a. Where it is not known, the magnitude is taken to be below 1, the
// strictest that occurs for a chosen token.
Gap measure_gap(const TieRule& rule, double a, double b, std::optional<double> logit_a);

// "fp32", "fp16", "bf16", else "N-bit mantissa".
std::string dtype_name(int mantissa);

}  // namespace assay::compare
