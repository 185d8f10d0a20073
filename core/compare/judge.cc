#include "core/compare/judge.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <map>
#include <set>

#include "assay/sdk.hpp"
#include "core/compare/analysis.h"
#include "core/compare/checks.h"
#include "core/compare/evidence.h"
#include "core/compare/judge_metric.h"
#include "core/compare/known_completion.h"
#include "core/compare/reason.h"
#include "core/compare/settle.h"
#include "core/compare/views.h"
#include "core/golden/text.h"

namespace assay::compare {
namespace {

CaseVerdict refused(Verdict verdict, std::string reason, const ResultSet* golden) {
  CaseVerdict result;
  result.verdict = verdict;
  result.reason = std::move(reason);
  if (golden != nullptr) result.golden = golden->path;
  return result;
}

Finding note(std::string message) {
  Finding finding;
  finding.verdict = Verdict::kIdentical;
  finding.note = true;
  finding.message = std::move(message);
  return finding;
}

std::optional<std::string_view> field(const assay_record& record, uint32_t bit, assay_str value) {
  if ((record.has & bit) == 0) return std::nullopt;
  return sdk::text(value);
}

// Said of a result that equals the known completion and is shorter than the golden, being out of tokens.
Finding shorter_note(const KnownRequest& request, size_t tokens, size_t judged) {
  Finding finding =
      note(fmt::format("all {} tokens that the case asks for are used up: the golden's text behind code "
                       "point {} is not reached and not judged",
                       tokens, judged));
  finding.request = request.id;
  return finding;
}

// Puts the known completions in the place of the golden's texts; appends INVALID findings where that cannot be done,
// and to `notes` what is left unjudged.
void use_known_completions(const JudgeOptions& options, Pairs& pairs, std::vector<Finding>& findings,
                           std::vector<Finding>& notes) {
  const auto fault = [&](std::string_view request, const Status& status) {
    Finding finding;
    finding.verdict = Verdict::kInvalid;
    finding.request = request;
    finding.message = status.message();
    // The message names its request itself, as it may stand alone elsewhere.
    const std::string prefix = fmt::format("request {}: ", text::printable(request));
    if (!request.empty() && finding.message.starts_with(prefix)) finding.message.erase(0, prefix.size());
    findings.push_back(std::move(finding));
  };
  const Result<std::vector<SourceText>> sources = load_sources(options.known.sources);
  if (!sources) return fault("", sources.status());
  for (size_t i = 0; i < pairs.size(); ++i) {
    const assay_record& reference = pairs.reference(i).record();
    const assay_record& candidate = pairs.candidate(i).record();
    KnownRequest request;
    request.id = sdk::text(pairs.pairs()[i].id);
    request.prompt = field(reference, ASSAY_HAS_PROMPT, reference.prompt);
    if (!request.prompt) request.prompt = field(candidate, ASSAY_HAS_PROMPT, candidate.prompt);
    request.golden_text = field(reference, ASSAY_HAS_TEXT, reference.text);
    request.actual_text = field(candidate, ASSAY_HAS_TEXT, candidate.text);
    const auto holds = [](const assay_record& record) { return (record.has & ASSAY_HAS_TOKENS) != 0; };
    if (options.most_tokens && holds(candidate) && candidate.tokens.size == *options.most_tokens) {
      // A golden of as many tokens came from no longer run: there a shorter text was cut.
      request.out_of_tokens = !holds(reference) || reference.tokens.size > *options.most_tokens;
    }
    if (sources->empty()) {
      if (const Status status = check_own_reference(request); !status.ok()) fault(request.id, status);
      continue;
    }
    Result<std::string> text = known_reference(*sources, request);
    if (text.ok()) {
      const size_t judged = text::count(std::string_view(*text).substr(0, text::first_blank_line(*text)));
      if (request.out_of_tokens && request.golden_text &&
          judged < text::count(request.golden_text->substr(0, text::first_blank_line(*request.golden_text)))) {
        notes.push_back(shorter_note(request, *options.most_tokens, judged));
      }
      pairs.reference(i).replace_text(*std::move(text));
    } else {
      fault(request.id, text.status());
    }
  }
}

bool any_request(const ResultSet& set, bool (*holds)(const RequestRecord&)) {
  return std::any_of(set.requests.begin(), set.requests.end(), holds);
}

// Fields of the result that no request of the golden holds, nor METRICS asks for: "generated_tokens, logprobs"; "" for
// none. (Those that METRICS asks for are NOT_COMPARABLE.)
std::string not_in_golden(const JudgeOptions& options, const ResultSet& golden, const ResultSet& actual) {
  using Holds = bool (*)(const RequestRecord&);
  static constexpr std::array<std::pair<std::string_view, Holds>, 3> kFields = {{
      {"generated_tokens", [](const RequestRecord& one) { return one.tokens && !one.tokens->empty(); }},
      {"logprobs", [](const RequestRecord& one) { return one.logprobs && !one.logprobs->empty(); }},
      {"routing_indices", [](const RequestRecord& one) { return one.routing.has_value(); }},
  }};
  std::string names;
  for (const auto& [name, holds] : kFields) {
    const bool asked = std::find(options.metrics.begin(), options.metrics.end(), name) != options.metrics.end();
    if (asked || any_request(golden, holds) || !any_request(actual, holds)) continue;
    names += fmt::format("{}{}", names.empty() ? "" : ", ", name);
  }
  return names;
}

std::vector<Finding> notes_of(const JudgeOptions& options, const ResultSet& golden, const ResultSet& actual) {
  std::vector<Finding> notes;
  if (const std::string absent = not_in_golden(options, golden, actual); !absent.empty()) {
    notes.push_back(note(fmt::format("not judged, as the golden does not hold them: {}", absent)));
  }
  for (const ResultSet* set : {&golden, &actual}) {
    for (const std::string& line : set->notes) notes.push_back(note(set->path + ": " + line));
  }
  for (const auto& [metric, tolerance] : options.tolerances) {
    if (std::find(options.metrics.begin(), options.metrics.end(), metric) != options.metrics.end()) continue;
    notes.push_back(
        note(fmt::format("ASSAY.tolerance names {}, which METRICS does not list: unused", text::quoted(metric, 60))));
  }
  return notes;
}

Finding broken_golden(const ResultSet& golden, const Status& status) {
  Finding finding;
  finding.verdict = Verdict::kInvalid;
  finding.message = golden.path + ": " + status.message();
  return finding;
}

void judge_metrics(const JudgeInput& input, const GoldenMeta& meta, const Analysis& analysis, const Pairs& pairs,
                   CaseVerdict& result) {
  const JudgeOptions& options = *input.options;
  const std::vector<assay_quantity> reference = quantity_views(*input.golden);
  const std::vector<assay_quantity> candidate = quantity_views(*input.actual);
  const ReanchoredPairs reanchored(pairs, analysis, *input.actual);
  std::set<std::string_view> done;
  for (const std::string& metric : options.metrics) {
    if (!done.insert(metric).second) continue;
    const std::vector<assay_pair>& judged = judged_on_rerun(metric) ? reanchored.pairs() : pairs.pairs();
    result.metrics.push_back(judge_metric(metric, {.options = options,
                                                   .pairs = judged,
                                                   .reference_quantities = reference,
                                                   .candidate_quantities = candidate,
                                                   .noise = meta.noise ? &*meta.noise : nullptr,
                                                   .dtype = analysis.dtype(),
                                                   .logit = analysis.largest_logit}));
    settle(result.metrics.back(), analysis, reanchored, options.known.enabled);
    result.verdict = worst(result.verdict, result.metrics.back().verdict);
  }
}

// Of the worst requests first, in the golden's order.
std::vector<RequestEvidence> evidence_of_case(const ResultSet& golden, const ResultSet& actual,
                                              const Analysis& analysis, const CaseVerdict& judged) {
  std::map<std::string_view, Verdict> worst_of;
  for (const MetricVerdict& metric : judged.metrics) {
    for (const Finding& finding : metric.findings) {
      if (finding.note || finding.request.empty()) continue;
      Verdict& verdict = worst_of.try_emplace(finding.request, Verdict::kIdentical).first->second;
      verdict = worst(verdict, finding.verdict);
    }
  }
  std::vector<std::pair<const RequestRecord*, Verdict>> chosen;
  for (const RequestRecord& record : golden.requests) {
    const auto found = worst_of.find(record.id);
    if (found == worst_of.end() || found->second == Verdict::kIdentical || actual.find(record.id) == nullptr) continue;
    chosen.emplace_back(&record, found->second);
  }
  std::stable_sort(chosen.begin(), chosen.end(), [](const auto& a, const auto& b) { return a.second > b.second; });
  if (chosen.size() > kMaxEvidenceRequests) chosen.resize(kMaxEvidenceRequests);
  std::vector<RequestEvidence> evidence;
  for (const auto& [record, verdict] : chosen) {
    const Reanchoring* reanchoring = analysis.of(record->id);
    evidence.push_back(evidence_of({.golden = record,
                                    .actual = actual.find(record->id),
                                    .again = analysis.again(record->id),
                                    .reanchoring = reanchoring ? std::optional(*reanchoring) : std::nullopt,
                                    .tolerance = analysis.tolerance}));
  }
  return evidence;
}

}  // namespace

CaseVerdict judge_case(const JudgeInput& input) {
  const JudgeOptions& options = *input.options;
  if (options.metrics.empty()) {
    return refused(Verdict::kNotComparable, "METRICS is empty or missing: nothing would be compared; name a metric",
                   input.golden);
  }
  if (input.golden == nullptr) return refused(Verdict::kNotComparable, input.golden_missing, nullptr);
  const ResultSet& golden = *input.golden;
  const ResultSet& actual = *input.actual;

  CaseVerdict result;
  result.golden = golden.path;
  MetricVerdict requests{std::string(kRequestsMetric), Verdict::kIdentical, check_sets(golden, actual)};
  Pairs pairs(golden, actual);
  if (escapes_newlines(golden) || escapes_newlines(actual)) {
    for (size_t i = 0; i < pairs.size(); ++i) {
      pairs.reference(i).unescape_newlines();
      pairs.candidate(i).unescape_newlines();
    }
  }
  std::vector<Finding> unjudged;
  if (options.known.enabled && requests.findings.empty()) {
    use_known_completions(options, pairs, requests.findings, unjudged);
  }
  if (!requests.findings.empty()) requests.verdict = Verdict::kInvalid;
  std::move(unjudged.begin(), unjudged.end(), std::back_inserter(requests.findings));
  for (Finding& finding : notes_of(options, golden, actual)) requests.findings.push_back(std::move(finding));

  const Result<GoldenMeta> meta = parse_golden_meta(golden.extra);
  if (!meta) requests.findings.insert(requests.findings.begin(), broken_golden(golden, meta.status()));
  if (!meta) requests.verdict = Verdict::kInvalid;

  result.verdict = requests.verdict;
  if (!requests.findings.empty()) result.metrics.push_back(std::move(requests));
  Analysis analysis;
  if (result.verdict != Verdict::kInvalid) {
    analysis = analyse(input, *meta, pairs);
    if (!analysis.note.empty()) {
      if (result.metrics.empty()) result.metrics.push_back({std::string(kRequestsMetric), Verdict::kIdentical, {}});
      result.metrics.front().findings.push_back(note(analysis.note));
    }
    judge_metrics(input, *meta, analysis, pairs, result);
  }
  if (!passes(result.verdict) && meta.ok() && meta->provenance && input.provenance != nullptr) {
    result.environment = provenance_differences(*meta->provenance, *input.provenance);
  }
  result.evidence = evidence_of_case(golden, actual, analysis, result);
  result.reason = reason_of(result);
  const bool told = result.reason.find("; re-anchored over ") != std::string::npos;  // by the finding it is made of
  if (!analysis.note.empty()) result.reason += "; " + analysis.note;
  if (const std::string rerun = analysis.summary(); !rerun.empty() && !told) result.reason += "; " + rerun;
  return result;
}

}  // namespace assay::compare
