// What a verdict shows for one request: plain data, bounded in size, enough for a report to explain the verdict without
// the golden, the result or the engine. Made in core/compare, carried by the journal, drawn by core/report.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace assay {

// A token as far as it is known.
struct TokenView {
  int32_t id = -1;                // -1: not known
  std::string text;               // of this token alone; empty: not known
  std::optional<double> logprob;  // nats
};

// One entry of the engine's top-k at a split.
struct SplitCandidate {
  TokenView token;
  bool golden = false;  // the golden's token
  bool result = false;  // the token that the judged run took
};

// A generated position at which the engine, fed with the golden tokens before it, prefers another token.
struct Split {
  int64_t index = -1;                  // generated position
  TokenView golden;                    // logprob: of the rerun, so that both come from one run
  TokenView result;                    // what the engine prefers there
  std::optional<double> gap;           // nats: logprob of result - logprob of golden, >= 0
  std::optional<double> gap_ulps;      // the gap in ULPs of the logits' dtype at the larger logit's magnitude
  std::optional<int64_t> golden_rank;  // 0: preferred
  bool near_tie = false;
  bool routing_tie = false;  // no near-tie, but a router's choice of experts was one, here or at an earlier token
  std::vector<SplitCandidate> top;  // descending logprob, at most kMaxSplitCandidates
};

// |golden - result| of logprobs on the same tokens, in nats.
struct LogprobStatistics {
  uint64_t count = 0;
  double max = 0;
  double mean = 0;
  double p99 = 0;
  uint64_t over = 0;     // beyond tolerance
  double tolerance = 0;  // nats
  int64_t max_index = -1;
};

// The engine run again over the case with the golden tokens fed back.
struct Reanchoring {
  std::string method;         // "forced": forced tokens; "continued": new prompts of golden prefixes; empty: not done
  std::string not_done;       // why nothing, or not everything, was done, one line
  uint64_t positions = 0;     // generated positions looked at
  uint64_t near_ties = 0;     // positions whose preferred token is another one by a near-tie
  uint64_t routing_ties = 0;  // ... by more than a near-tie, after a router's choice of experts that was a tie
  uint64_t true_splits = 0;   // positions whose preferred token is another one that rounding cannot explain
  bool lone = false;          // one token of the golden alone differs: behind it, golden and judged run agree again
  bool reproduced =
      false;  // the rerun prefers, at the first divergent token, what the judged run took, or ties with it
  std::string contradiction = {};  // the judged run's own tokens, fed back, are not what the engine takes: how, one
                                   // line; empty: they are, or that was not looked at
  std::string text_contradiction = {};  // the same of texts: the same tokens give another text; empty: they do not
  double tie_limit_ulps = 2;            // gaps up to here are near-ties, in ULPs ...
  double tie_limit_nats = 0;            // ... or up to here, in nats: noise recorded in the golden; 0: none recorded
  std::vector<Split> splits;            // the first kMaxSplits, ascending index
  std::optional<LogprobStatistics> logprobs;  // full length, prompt and generated
  // Every position was looked at, and near-ties alone explain what the judged run took.
  bool explains() const { return whole() && reproduced && near_ties > 0 && routing_ties + true_splits == 0; }
  // The same with routing ties among them: rounding may explain it, but numbers are beyond what rounding of logits is.
  bool drifts() const { return whole() && reproduced && routing_ties > 0 && true_splits == 0; }
  bool whole() const { return !method.empty() && not_done.empty() && contradiction.empty(); }
};

// One generated position of both sides.
struct AlignedToken {
  std::optional<TokenView> golden;
  std::optional<TokenView> result;
  std::optional<double> delta;  // |golden - result| of the logprob, nats; from the rerun where tokens part before it
};

struct RoutingDifference {
  int64_t token = 0;             // position in the sequence: prompt, then generated
  int64_t layer = 0;             // among the layers that route
  std::vector<uint16_t> golden;  // ascending expert ids
  std::vector<uint16_t> result;
  std::optional<double>
      margin;  // router score of the last expert chosen - that of the best one left out, in the result
};

struct RoutingEvidence {
  uint64_t compared = 0;  // (token, layer) sets
  uint64_t differing = 0;
  int64_t first_layer = -1;              // lowest layer that differs at the first token that differs
  std::vector<uint64_t> by_layer;        // (layers) differing sets
  std::vector<RoutingDifference> first;  // at most kMaxRoutingDifferences, in order of token, then layer
};

struct RequestEvidence {
  std::string request;      // id
  std::string prompt;       // at most its last kMaxEvidenceText bytes, whole code points
  std::string golden_text;  // at most kMaxEvidenceText bytes around the first difference
  std::string result_text;
  int64_t text_difference = -1;  // first code point that differs, counted in the whole texts; -1: none or not known
  int64_t text_offset = 0;       // code points cut off before both shown texts
  std::vector<int32_t> golden_prompt_ids;  // both empty unless they differ; at most kMaxAlignedTokens
  std::vector<int32_t> result_prompt_ids;
  int64_t first_divergent = -1;  // generated token; -1: none, or tokens are not known
  int64_t first_shown = 0;       // generated position of tokens[0]
  int64_t golden_tokens = -1;    // number of generated tokens; -1: not known
  int64_t result_tokens = -1;
  std::vector<AlignedToken> tokens;  // at most kMaxAlignedTokens around the first divergent token
  std::optional<Split> split;        // at the first divergent token, as far as known without a rerun
  std::optional<Reanchoring> reanchoring;
  std::optional<LogprobStatistics> logprobs;  // of the judged run, over what both sides share
  std::optional<RoutingEvidence> routing;
};

inline constexpr size_t kMaxEvidenceText = 4096;
inline constexpr size_t kMaxAlignedTokens = 512;
inline constexpr size_t kMaxSplits = 32;
inline constexpr size_t kMaxSplitCandidates = 10;
inline constexpr size_t kMaxRoutingDifferences = 64;

}  // namespace assay
