// Divergence analysis of one case: which requests part from the golden, and what a rerun on the golden's tokens says.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "assay/evidence.h"
#include "assay/provenance.h"
#include "core/compare/judge.h"
#include "core/compare/near_tie.h"
#include "core/compare/rerun.h"
#include "core/compare/views.h"

namespace assay::compare {

struct Analysis {
  std::map<std::string, Reanchoring, std::less<>> parted;  // requests that part, whether or not re-anchored
  bool attempted = false;                                  // there was an engine to run again, and a reason to
  std::optional<RerunResult> rerun;
  std::optional<RerunResult> own;  // on the judged run's tokens, where near-ties or routing ties may explain a request
  std::optional<int> golden_mantissa;  // bits of mantissa of the logits, as far as known
  std::optional<int> run_mantissa;
  TieRule rule;
  std::string note;                     // what the golden says of its dtype and is not so; empty: nothing
  double tolerance = 0;                 // of logprobs, nats: as the comparator takes it
  std::optional<double> largest_logit;  // magnitude, of the rerun's golden tokens

  const Reanchoring* of(std::string_view request) const;
  const RerunRequest* again(std::string_view request) const;  // null: none
  bool explains(std::string_view request) const;
  std::string dtype() const;  // of the coarser logits; empty: not known
  // "re-anchored 1 request over 24 tokens: 1 near-tie (largest gap 0.0156 nats, 1 ULP of bf16), 0 true splits"; empty:
  // nothing parted, or nothing was attempted.
  std::string summary() const;
};

// Calls each rerun of input.rerun at most once. `pairs`: of input.golden and input.actual, with the texts that are
// judged.
Analysis analyse(const JudgeInput& input, const GoldenMeta& meta, Pairs& pairs);

}  // namespace assay::compare
