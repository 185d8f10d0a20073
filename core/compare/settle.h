// What the divergence analysis changes in the findings of comparators.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "assay/plugin_abi.h"
#include "assay/verdict.h"
#include "core/compare/analysis.h"
#include "core/compare/views.h"

namespace assay::compare {

// True for metrics that compare numbers on given tokens (logprobs, top-n logprobs, routing indices): of an explained
// request they are judged on the rerun, whose tokens are the golden's.
bool judged_on_rerun(std::string_view metric);

// The pairs of a case with the results of explained requests replaced by their rerun; text, times and prompt stay those
// of the judged run. Borrows `pairs`.
class ReanchoredPairs {
 public:
  ReanchoredPairs(const Pairs& pairs, const Analysis& analysis, const ResultSet& actual);
  const std::vector<assay_pair>& pairs() const { return pairs_; }
  bool replaced(std::string_view request) const;

 private:
  std::vector<assay_pair> pairs_;
  std::vector<std::unique_ptr<RequestRecord>> records_;
  std::vector<std::unique_ptr<RecordView>> views_;
};

// Id, text and logprob, as far as they are told: 5 " fox" (-1.25 nats). `digits`: of the logprob, significant ones.
std::string token_text(const TokenView& token, int digits);

// "24 tokens: 1 near-tie, 2 routing ties, 0 true splits"; routing ties only where there are any.
std::string counts_of(const Reanchoring& found);

// DIVERGED findings of explained requests become EQUIVALENT in generated_tokens and generated_text, except where the
// text is a known completion; with routing ties they become DRIFT in every metric; findings of requests that part tell
// what the rerun said; those made on the rerun say so. Sets the metric's verdict anew.
void settle(MetricVerdict& metric, const Analysis& analysis, const ReanchoredPairs& reanchored, bool known_completion);

}  // namespace assay::compare
