#include "core/compare/judge_metric.h"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <exception>
#include <set>
#include <utility>

#include "assay/sdk.hpp"
#include "core/compare/ulp.h"
#include "core/golden/json_text.h"
#include "core/golden/text.h"

namespace assay::compare {
namespace {

struct Need {
  std::string_view metric;
  uint64_t capability;
  const char* name;  // of the capability
};
constexpr std::array<Need, 7> kNeeds = {{{"generated_text", ASSAY_CAP_TEXT, "text"},
                                         {"known_completion", ASSAY_CAP_TEXT, "text"},
                                         {"generated_tokens", ASSAY_CAP_TOKENS, "tokens"},
                                         {"logprobs", ASSAY_CAP_LOGPROBS, "logprobs"},
                                         {"top_n_logprobs", ASSAY_CAP_TOP_N, "top_n"},
                                         {"generated_top_n_logprobs", ASSAY_CAP_TOP_N, "top_n"},
                                         {"routing_indices", ASSAY_CAP_ROUTING, "routing"}}};

Finding plain_finding(Verdict verdict, std::string request, std::string message) {
  Finding finding;
  finding.verdict = verdict;
  finding.request = std::move(request);
  finding.message = std::move(message);
  return finding;
}

MetricVerdict refused(const std::string& metric, Verdict verdict, std::string message) {
  return {metric, verdict, {plain_finding(verdict, "", std::move(message))}};
}

double finite_or_zero(double value) { return std::isfinite(value) ? value : 0; }

std::optional<Verdict> verdict_of(uint32_t kind) {
  switch (kind) {
    case ASSAY_FINDING_EQUAL:
      return Verdict::kIdentical;
    case ASSAY_FINDING_WITHIN:
      return Verdict::kEquivalent;
    case ASSAY_FINDING_BEYOND:
      return Verdict::kDrift;
    case ASSAY_FINDING_DIFFERS:
      return Verdict::kDiverged;
    case ASSAY_FINDING_BROKEN:
      return Verdict::kInvalid;
    case ASSAY_FINDING_MISSING:
      return Verdict::kNotComparable;
    case ASSAY_FINDING_NOTE:
      return Verdict::kIdentical;
    default:
      return std::nullopt;
  }
}

// Copies findings out of a comparator. Its callback runs inside foreign frames, so nothing may be thrown there.
struct Collector {
  const std::string& metric;
  std::vector<Finding> findings;
  bool failed = false;

  static void take(void* context, const assay_finding* finding) noexcept {
    auto& self = *static_cast<Collector*>(context);
    try {
      self.add(*finding);
    } catch (const std::exception&) {
      self.failed = true;
    }
  }

  void add(const assay_finding& finding) {
    Finding copy;
    const std::optional<Verdict> verdict = verdict_of(finding.kind);
    copy.verdict = verdict.value_or(Verdict::kInvalid);
    copy.note = finding.kind == ASSAY_FINDING_NOTE;
    copy.request = sdk::text(finding.id);
    copy.index = finding.index;
    copy.compared = finding.compared;
    copy.differing = finding.differing;
    copy.max_abs_difference = finite_or_zero(finding.max_abs_difference);
    copy.smallest_passing_tolerance = finite_or_zero(finding.smallest_passing_tolerance);
    copy.message = verdict ? text::printable(sdk::text(finding.message))
                           : fmt::format("comparator {} reported a finding of unknown kind {}", metric, finding.kind);
    findings.push_back(std::move(copy));
  }
};

Status call_comparator(const assay_comparator_table& table, const assay_judgement& judgement, Collector& collector) {
  const assay_sink sink = {&collector, &Collector::take};
  try {
    Status status = sdk::call(table.judge, &judgement, &sink);
    if (status.ok() && collector.failed) return exhausted("its findings could not be kept: out of memory");
    return status;
  } catch (const std::exception& failure) {
    return internal(fmt::format("it threw an exception across the plugin border: {}", failure.what()));
  } catch (...) {
    return internal("it threw an unknown exception across the plugin border");
  }
}

// Adds NOT_COMPARABLE findings for what no judging finding covers.
void require_evidence(const std::string& metric, const std::vector<assay_pair>& pairs, std::vector<Finding>& findings) {
  std::set<std::string_view> judged;
  bool whole_case = false;
  bool failing = false;
  uint64_t compared = 0;
  for (const Finding& finding : findings) {
    if (finding.note) continue;
    judged.insert(finding.request);
    whole_case = whole_case || finding.request.empty();
    failing = failing || !passes(finding.verdict);
    compared += finding.compared;
  }
  std::vector<Finding> missing;
  for (const assay_pair& pair : pairs) {
    if (whole_case || judged.count(sdk::text(pair.id)) > 0) continue;
    missing.push_back(plain_finding(Verdict::kNotComparable, std::string(sdk::text(pair.id)),
                                    fmt::format("comparator {} did not judge this request", metric)));
  }
  if (missing.empty() && !failing && compared == 0) {
    missing.push_back(
        plain_finding(Verdict::kNotComparable, "", fmt::format("comparator {} compared no value", metric)));
  }
  findings.insert(findings.end(), missing.begin(), missing.end());
}

// As documented at assay_judgement.options.
std::string options_json(const std::string& metric, const MetricInput& input) {
  std::string json;
  const auto member = [&json](std::string_view name) {
    json += json.empty() ? "" : ",";
    json::append_string(json, name);
    json += ':';
  };
  const auto number = [&](std::string_view name, double value) {
    if (!std::isfinite(value)) return;
    member(name);
    json::append_double(json, value);
  };
  const auto& tolerances = input.options.tolerances;
  if (const auto given = tolerances.find(metric); given != tolerances.end()) number("tolerance", given->second);
  if (input.noise != nullptr) {
    if (const auto of = input.noise->metrics.find(metric); of != input.noise->metrics.end()) {
      std::string inner = std::exchange(json, "");
      number("max", of->second.max);
      number("p99", of->second.p99);
      number("relative", of->second.relative);
      const std::string noise = std::exchange(json, std::move(inner));
      member("noise");
      json += "{" + noise + "}";
    }
  }
  if (mantissa_bits(input.dtype)) {
    member("dtype");
    json::append_string(json, input.dtype);
  }
  if (input.logit) number("logit", *input.logit);
  if (!input.options.known.sources.empty()) {
    member("sources");
    std::string list;
    for (const std::string& source : input.options.known.sources) {
      list += list.empty() ? "" : ",";
      json::append_string(list, source);
    }
    json += "[" + list + "]";
  }
  return "{" + json + "}";
}

}  // namespace

MetricVerdict judge_metric(const std::string& metric, const MetricInput& input) {
  const JudgeOptions& options = input.options;
  const std::string shown = text::quoted(metric, 60);
  for (const Need& need : kNeeds) {
    if (need.metric != metric || !options.capabilities || (*options.capabilities & need.capability) != 0) continue;
    const auto how = options.found_out.find(need.name);
    return refused(
        metric, Verdict::kNotComparable,
        fmt::format("the engine cannot supply {}{}", metric, how == options.found_out.end() ? "" : ": " + how->second));
  }
  const Result<const assay_comparator_table*> table = options.lookup(metric);
  if (!table) {
    return refused(metric, Verdict::kNotComparable,
                   fmt::format("no comparator plugin for metric {}: {}", shown, table.status().message()));
  }
  if (const auto given = options.tolerances.find(metric);
      given != options.tolerances.end() && !(std::isfinite(given->second) && given->second >= 0)) {
    return refused(metric, Verdict::kInvalid,
                   fmt::format("ASSAY.tolerance of {} is {}, expected a finite number >= 0", shown, given->second));
  }
  const std::string json = options_json(metric, input);
  auto judgement = sdk::sized<assay_judgement>();
  judgement.known_completion = options.known.enabled ? 1 : 0;
  judgement.metric = sdk::view(metric);
  judgement.pairs = input.pairs.data();
  judgement.pair_count = input.pairs.size();
  judgement.reference_quantities = input.reference_quantities.data();
  judgement.reference_quantity_count = input.reference_quantities.size();
  judgement.candidate_quantities = input.candidate_quantities.data();
  judgement.candidate_quantity_count = input.candidate_quantities.size();
  judgement.options = sdk::view(json);

  Collector collector{metric, {}, false};
  MetricVerdict result{metric, Verdict::kIdentical, {}};
  const Status status = call_comparator(**table, judgement, collector);
  result.findings = std::move(collector.findings);
  if (status.ok()) {
    require_evidence(metric, input.pairs, result.findings);
  } else {
    result.findings.push_back(
        plain_finding(Verdict::kInvalid, "", fmt::format("comparator {} failed: {}", metric, status.message())));
  }
  for (const Finding& finding : result.findings) {
    if (!finding.note) result.verdict = worst(result.verdict, finding.verdict);
  }
  return result;
}

}  // namespace assay::compare
