#include "core/compare/analysis.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "assay/sdk.hpp"
#include "core/compare/checks.h"
#include "core/compare/divergence.h"
#include "core/compare/logit_dtype.h"
#include "core/compare/own_run.h"
#include "core/compare/reanchoring.h"
#include "core/compare/settle.h"
#include "core/compare/tolerance.h"
#include "core/compare/ulp.h"
#include "core/golden/text.h"

namespace assay::compare {
namespace {

constexpr int kUnknown = 24;  // bits of mantissa where the run's dtype is not known: the strictest

// Tokens decide where both sides have them; else texts, as far as both reach.
bool parts(const assay_record& golden, const assay_record& result) {
  if ((golden.has & result.has & ASSAY_HAS_TOKENS) != 0) {
    return golden.tokens.size > 0 && result.tokens.size > 0 &&
           first_divergent_token(golden.tokens, result.tokens).has_value();
  }
  if ((golden.has & result.has & ASSAY_HAS_TEXT) == 0) return false;
  const std::string_view a = sdk::text(golden.text);
  const std::string_view b = sdk::text(result.text);
  return text::common_prefix(a, b) < std::min(a.size(), b.size());
}

std::vector<PartedRequest> parted_requests(Pairs& pairs) {
  std::vector<PartedRequest> parted;
  for (size_t i = 0; i < pairs.size(); ++i) {
    const assay_record& golden = pairs.reference(i).record();
    if (!parts(golden, pairs.candidate(i).record())) continue;
    parted.push_back({std::string(sdk::text(pairs.pairs()[i].id)), std::string(sdk::text(golden.text))});
  }
  return parted;
}

std::optional<double> largest_logit(const RerunResult& rerun) {
  std::optional<double> largest;
  for (const RerunRequest& request : rerun.requests) {
    for (const RerunPosition& position : request.positions) {
      if (position.golden_logit) largest = std::max(largest.value_or(0), std::fabs(*position.golden_logit));
    }
  }
  return largest;
}

void learn_dtypes(const JudgeInput& input, const GoldenMeta& meta, Analysis& analysis) {
  if (meta.provenance) analysis.golden_mantissa = mantissa_bits(meta.provenance->dtype);
  if (analysis.golden_mantissa && off_grid(*input.golden, *analysis.golden_mantissa)) {
    analysis.golden_mantissa.reset();
    analysis.note = fmt::format(
        "the golden's provenance says that its logits are {}, but its top-n logprobs do not lie on that grid: its "
        "dtype is told by its numbers",
        meta.provenance->dtype);
  }
  if (!analysis.golden_mantissa) {
    analysis.golden_mantissa = infer_mantissa(*input.golden, analysis.rerun ? &*analysis.rerun : nullptr);
  }
  if (input.rerun != nullptr && input.rerun->logits_mantissa() > 0) {
    analysis.run_mantissa = input.rerun->logits_mantissa();
  } else if (input.provenance != nullptr) {
    analysis.run_mantissa = mantissa_bits(input.provenance->dtype);
  }
}

// Requests that ties seem to explain: is the judged run what the engine does, behind the split too?
void check_own_tokens(const JudgeInput& input, const std::vector<PartedRequest>& parted, Analysis& analysis) {
  std::vector<PartedRequest> explained;
  for (const PartedRequest& request : parted) {
    const Reanchoring& found = analysis.parted.at(request.id);
    if (found.explains() || found.drifts()) explained.push_back(request);
  }
  if (explained.empty()) return;
  for (const PartedRequest& request : explained) {
    const RequestRecord& golden = *input.golden->find(request.id);
    if (!golden.tokens || escapes_newlines(*input.golden)) continue;
    analysis.parted.at(request.id).text_contradiction =
        text_contradiction("golden", golden.text, *analysis.rerun->find(request.id));
  }
  Result<RerunResult> own = input.rerun->run_own({.golden = input.golden, .actual = input.actual, .parted = explained});
  if (!own.ok() && own.status().code() == StatusCode::kUnsupported) return;
  if (own.ok()) analysis.own = *std::move(own);
  for (const PartedRequest& request : explained) {
    const RerunRequest* again = analysis.own ? analysis.own->find(request.id) : nullptr;
    std::string& contradiction = analysis.parted.at(request.id).contradiction;
    if (again == nullptr) {
      contradiction = "the judged run's own tokens could not be fed back: " +
                      (analysis.own ? "the engine did not answer" : own.status().message());
    } else {
      std::string& of_text = analysis.parted.at(request.id).text_contradiction;
      if (of_text.empty()) of_text = text_contradiction("result", input.actual->find(request.id)->text, *again);
      contradiction =
          own_contradiction(*input.actual->find(request.id), *again, analysis.run_mantissa.value_or(kUnknown));
    }
  }
}

Reanchoring not_done(std::string why) {
  Reanchoring none;
  none.not_done = std::move(why);
  return none;
}

}  // namespace

const Reanchoring* Analysis::of(std::string_view request) const {
  const auto found = parted.find(request);
  return found == parted.end() ? nullptr : &found->second;
}

const RerunRequest* Analysis::again(std::string_view request) const {
  return rerun && of(request) != nullptr ? rerun->find(request) : nullptr;
}

bool Analysis::explains(std::string_view request) const {
  const Reanchoring* found = of(request);
  return found != nullptr && found->explains();
}

std::string Analysis::dtype() const {
  if (!golden_mantissa && !run_mantissa) return "";
  const std::string name = dtype_name(rule.mantissa);
  return mantissa_bits(name) ? name : "";
}

std::string Analysis::summary() const {
  if (parted.empty()) return "";
  Reanchoring all;
  size_t done = 0;
  std::string why;
  const Split* widest = nullptr;  // of the near-ties
  for (const auto& [request, one] : parted) {
    if (one.method.empty()) {
      why = one.not_done;
      continue;
    }
    ++done;
    all.positions += one.positions;
    all.near_ties += one.near_ties;
    all.routing_ties += one.routing_ties;
    all.true_splits += one.true_splits;
    for (const Split& split : one.splits) {
      if (split.near_tie && (widest == nullptr || split.gap.value_or(0) > widest->gap.value_or(0))) widest = &split;
    }
  }
  if (done == 0) return attempted ? "not re-anchored: " + why : "";
  const auto plural = [](uint64_t n, const char* one) { return fmt::format("{} {}{}", n, one, n == 1 ? "" : "s"); };
  std::string line = fmt::format("re-anchored {} over {}", plural(done, "request"), counts_of(all));
  if (widest != nullptr) {
    line += fmt::format(", largest gap of a near-tie {:.3g} nats, {:.3g} ULP of {}", widest->gap.value_or(0),
                        widest->gap_ulps.value_or(0), dtype_name(rule.mantissa));
  }
  if (!rule.arithmetic.empty()) line += "; " + rule.arithmetic;
  if (done < parted.size()) line += fmt::format("; {} not re-anchored: {}", parted.size() - done, why);
  return line;
}

Analysis analyse(const JudgeInput& input, const GoldenMeta& meta, Pairs& pairs) {
  Analysis analysis;
  double noise = 0;
  if (meta.noise) {
    if (const auto of = meta.noise->metrics.find("logprobs"); of != meta.noise->metrics.end()) noise = of->second.max;
  }
  const std::vector<PartedRequest> parted = parted_requests(pairs);
  std::string why = input.no_rerun;
  analysis.attempted = !parted.empty() && input.rerun != nullptr;
  if (analysis.attempted) {
    Result<RerunResult> rerun = input.rerun->run({.golden = input.golden, .actual = input.actual, .parted = parted});
    if (rerun.ok()) {
      analysis.rerun = *std::move(rerun);
      analysis.largest_logit = largest_logit(*analysis.rerun);
    } else {
      why = rerun.status().message();
    }
  }
  learn_dtypes(input, meta, analysis);
  analysis.rule = tie_rule(analysis.golden_mantissa, analysis.run_mantissa, noise);
  ComparatorOptions options;
  const auto given = input.options->tolerances.find("logprobs");
  if (given != input.options->tolerances.end()) options.tolerance = given->second;
  if (noise > 0) options.noise.max = noise;
  options.dtype = analysis.dtype();
  options.logit = analysis.largest_logit;
  analysis.tolerance = logprob_tolerance(options).value;
  for (const PartedRequest& request : parted) {
    const RerunRequest* again = analysis.rerun ? analysis.rerun->find(request.id) : nullptr;
    if (again == nullptr) {
      analysis.parted.emplace(request.id, not_done(analysis.rerun ? "the rerun did not reach this request" : why));
      continue;
    }
    analysis.parted.emplace(request.id, reanchor({.again = again,
                                                  .golden = input.golden->find(request.id),
                                                  .actual = input.actual->find(request.id),
                                                  .rule = &analysis.rule,
                                                  .method = analysis.rerun->method,
                                                  .tolerance = analysis.tolerance}));
  }
  if (analysis.rerun) check_own_tokens(input, parted, analysis);
  return analysis;
}

}  // namespace assay::compare
