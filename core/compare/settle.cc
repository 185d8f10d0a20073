#include "core/compare/settle.h"

#include <fmt/format.h>

#include <algorithm>

#include "assay/sdk.hpp"
#include "core/golden/text.h"

namespace assay::compare {
namespace {

// The first true split, else the first routing tie, else the first near-tie.
const Split* worst_split(const Reanchoring& found) {
  const auto rank = [](const Split& split) { return split.near_tie ? 2 : split.routing_tie ? 1 : 0; };
  const Split* worst = nullptr;
  for (const Split& split : found.splits) {
    if (worst == nullptr || rank(split) < rank(*worst)) worst = &split;
  }
  return worst;
}

std::string gap_text(const Split& split, const TieRule& rule) {
  if (!split.gap) return "gap not known: the golden's token is not among the engine's best";
  std::string line = fmt::format("gap {:.3g} nats, {:.3g} ULP of {}", *split.gap, split.gap_ulps.value_or(0),
                                 dtype_name(rule.mantissa));
  if (split.golden_rank) line += fmt::format(", golden token at place {}", *split.golden_rank + 1);
  return line;
}

// What the rerun says about a request that parts, to be appended to a line; empty: there was none.
std::string verdict_of_rerun(const Reanchoring& found, const TieRule& rule) {
  if (found.method.empty()) return "";
  std::string line = "; re-anchored over " + counts_of(found);
  if (!rule.arithmetic.empty()) line += "; " + rule.arithmetic;
  if (found.lone) line += "; all tokens behind it agree: this token alone differs: it, or the golden, was changed";
  if (!found.not_done.empty()) line += "; " + found.not_done;
  if (!found.contradiction.empty()) line += "; " + found.contradiction;
  if (!found.reproduced) line += "; not reproduced: depends on state or schedule";
  const Split* shown = worst_split(found);
  if (shown == nullptr) return line;
  if (shown->result.id < 0 && shown->golden.id < 0) {
    return line + fmt::format("; the golden ends at generated token {} where the engine goes on", shown->index);
  }
  return line + fmt::format("; {} at generated token {}: golden {}, engine {}, {}",
                            shown->near_tie      ? "near-tie"
                            : shown->routing_tie ? "experts tie at or before this token, so that the token differs"
                                                 : "true split",
                            shown->index, token_text(shown->golden, 6), token_text(shown->result, 6),
                            gap_text(*shown, rule));
}

}  // namespace

std::string token_text(const TokenView& token, int digits) {
  std::string out = token.id >= 0 ? fmt::format("{}", token.id) : "none";
  if (!token.text.empty()) out += " " + text::quoted(token.text, 20);
  if (token.logprob) out += fmt::format(" ({:.{}g} nats)", *token.logprob, digits);
  return out;
}

std::string counts_of(const Reanchoring& found) {
  const auto plural = [](uint64_t n, const char* one) { return fmt::format("{} {}{}", n, one, n == 1 ? "" : "s"); };
  std::string line = plural(found.positions, "token") + ": " + plural(found.near_ties, "near-tie");
  if (found.routing_ties > 0) line += ", " + plural(found.routing_ties, "routing tie");
  return line + ", " + plural(found.true_splits, "true split");
}

bool judged_on_rerun(std::string_view metric) {
  return metric == "routing_indices" || metric.find("logprobs") != std::string_view::npos;
}

ReanchoredPairs::ReanchoredPairs(const Pairs& pairs, const Analysis& analysis, const ResultSet& actual)
    : pairs_(pairs.pairs()) {
  for (assay_pair& pair : pairs_) {
    const std::string_view id = sdk::text(pair.id);
    const RerunRequest* again = analysis.again(id);
    const RequestRecord* judged = actual.find(id);
    if (!analysis.explains(id) || again == nullptr || !again->record || judged == nullptr) continue;
    auto record = std::make_unique<RequestRecord>(*again->record);
    record->text = judged->text;
    record->prompt = judged->prompt;
    record->tpot = judged->tpot;
    record->latency = judged->latency;
    views_.push_back(std::make_unique<RecordView>(*record));
    records_.push_back(std::move(record));
    pair.candidate = &views_.back()->record();
  }
}

bool ReanchoredPairs::replaced(std::string_view request) const {
  return std::any_of(records_.begin(), records_.end(), [&](const auto& record) { return record->id == request; });
}

void settle(MetricVerdict& metric, const Analysis& analysis, const ReanchoredPairs& reanchored, bool known_completion) {
  const bool of_text = metric.metric == "generated_text" || metric.metric == "known_completion";
  const bool of_tokens = metric.metric == "generated_tokens";
  metric.verdict = Verdict::kIdentical;
  for (Finding& finding : metric.findings) {
    const Reanchoring* found = analysis.of(finding.request);
    if (found != nullptr && !finding.note) {
      if (judged_on_rerun(metric.metric) && reanchored.replaced(finding.request)) {
        finding.message = "re-anchored: " + finding.message;
      } else if (finding.verdict == Verdict::kDiverged) {
        const bool exact = of_text && (known_completion || metric.metric == "known_completion");
        const bool other_text = of_text && !found->text_contradiction.empty();
        if (found->explains() && (of_tokens || of_text) && !exact && !other_text)
          finding.verdict = Verdict::kEquivalent;
        if (found->drifts() && !exact && !other_text) finding.verdict = Verdict::kDrift;
        finding.message += verdict_of_rerun(*found, analysis.rule);
        if (other_text) finding.message += "; " + found->text_contradiction;
        if (exact && found->explains()) finding.message += "; a known completion must be exact";
      }
    }
    if (!finding.note) metric.verdict = worst(metric.verdict, finding.verdict);
  }
}

}  // namespace assay::compare
