// Causes seen in numbers while the tokens agree, and causes outside of any comparison.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "core/report/diagnosis_rules.h"
#include "core/report/html_text.h"

namespace assay::report {
namespace {

constexpr size_t kEnoughPairs = 8;
constexpr double kSpread = 0.02;           // of a value that counts as constant
constexpr double kSmallestLogprob = 2e-5;  // nats: rounding to fp32 stays far below
constexpr double kClearRouting = 1e-2;     // router score

// Logprobs of both sides where the tokens are the same, in nats.
struct Pairs {
  std::vector<double> golden;
  std::vector<double> result;
};

Pairs pairs_of(const RequestEvidence& evidence) {
  Pairs pairs;
  for (const AlignedToken& token : evidence.tokens) {
    if (!token.golden || !token.result || token.golden->id != token.result->id) break;
    if (!token.golden->logprob || !token.result->logprob) continue;
    pairs.golden.push_back(*token.golden->logprob);
    pairs.result.push_back(*token.result->logprob);
  }
  return pairs;
}

// The value that all of `values` are close to.
std::optional<double> constant(const std::vector<double>& values) {
  if (values.size() < kEnoughPairs) return std::nullopt;
  const auto [low, high] = std::minmax_element(values.begin(), values.end());
  const double middle = (*low + *high) / 2;
  if (!std::isfinite(middle) || *high - *low > kSpread * std::abs(middle)) return std::nullopt;
  return middle;
}

std::optional<Diagnosis> regular(const RequestEvidence& evidence) {
  const Pairs pairs = pairs_of(evidence);
  std::vector<double> differences;
  std::vector<double> ratios;
  for (size_t i = 0; i < pairs.golden.size(); ++i) {
    differences.push_back(pairs.result[i] - pairs.golden[i]);
    if (std::abs(pairs.golden[i]) > kSmallestLogprob) ratios.push_back(pairs.result[i] / pairs.golden[i]);
  }
  if (const std::optional<double> ratio = constant(ratios); ratio && std::abs(*ratio - 1) > 0.01) {
    return Diagnosis{
        "logprobs off by a factor",
        fmt::format("request {}: every logprob is {} times the golden's over {} positions: another base of "
                    "the logarithm (log10 gives 0.434, log2 gives 1.44), or a temperature",
                    evidence.request, figure(*ratio), ratios.size())};
  }
  if (const std::optional<double> offset = constant(differences); offset && std::abs(*offset) > 1e-6) {
    return Diagnosis{"logprobs off by a constant",
                     fmt::format("request {}: every logprob is {} nats off over {} positions: the normalisation of the "
                                 "softmax (another vocabulary size, padding or masked tokens counted)",
                                 evidence.request, figure(*offset), differences.size())};
  }
  return std::nullopt;
}

std::string environment_hint(const CaseVerdict& verdict) {
  for (const char* member : {"dtype", "weights_sha256", "tokenizer_sha256", "device", "backend", "engine"}) {
    for (const std::string& line : verdict.environment) {
      if (line.rfind(member, 0) == 0) return line;
    }
  }
  return "";
}

bool numbers_only(const CaseVerdict& verdict) {
  return std::none_of(verdict.evidence.begin(), verdict.evidence.end(),
                      [](const RequestEvidence& evidence) { return evidence.first_divergent >= 0; });
}

void diagnose_logprobs(const CaseVerdict& verdict, Diagnoses& found) {
  const std::optional<Verdict> judged = verdict_of(verdict, "logprobs");
  if (!judged || *judged == Verdict::kIdentical) return;
  uint64_t over = 0;
  uint64_t count = 0;
  const RequestEvidence* worst = nullptr;
  for (const RequestEvidence& evidence : verdict.evidence) {
    if (!evidence.logprobs) continue;
    if (std::optional<Diagnosis> one = regular(evidence)) {
      found.push_back(*std::move(one));
      return;
    }
    over += evidence.logprobs->over;
    count += evidence.logprobs->count;
    if (worst == nullptr || evidence.logprobs->max > worst->logprobs->max) worst = &evidence;
  }
  if (worst == nullptr || !numbers_only(verdict)) return;
  const LogprobStatistics& numbers = *worst->logprobs;
  const std::string largest = fmt::format("the largest difference is {} nats, request {} index {}", figure(numbers.max),
                                          worst->request, numbers.max_index);
  const std::string hint = environment_hint(verdict);
  if (over == 1 && numbers.max > 20 * numbers.mean) {
    found.push_back({"a single logprob", fmt::format("one of {} logprobs is beyond tolerance and the tokens agree; {}: "
                                                     "one value was altered, the arithmetic around it is right",
                                                     count, largest)});
  } else if (over > 0) {
    found.push_back(
        {"numeric drift", fmt::format("the tokens agree, {} of {} logprobs are beyond the tolerance of {}; {}{}", over,
                                      count, figure(numbers.tolerance), largest,
                                      hint.empty() ? ": another order of summation, kernel or rounding point"
                                                   : ". What changed since the golden was made: " + hint)});
  } else if (passes(verdict.verdict)) {
    found.push_back({"rounding", fmt::format("the tokens agree and every logprob is within the tolerance of {}; {}",
                                             figure(numbers.tolerance), largest)});
  }
}

void diagnose_routing(const CaseVerdict& verdict, Diagnoses& found) {
  for (const RequestEvidence& evidence : verdict.evidence) {
    if (!evidence.routing || evidence.routing->differing == 0 || evidence.routing->first.empty()) continue;
    const RoutingEvidence& routing = *evidence.routing;
    const RoutingDifference& first = routing.first.front();
    std::string where = fmt::format("request {}: {} of {} expert sets differ, first at position {}, layer {}",
                                    evidence.request, routing.differing, routing.compared, first.token, first.layer);
    if (!first.margin) {
      found.push_back({"other experts", where});
    } else if (std::abs(*first.margin) <= kClearRouting) {
      found.push_back({"experts nearly tied", fmt::format("{}; the margin there is {}, so a small difference of the "
                                                          "activations before that layer decides",
                                                          where, figure(*first.margin))});
    } else {
      found.push_back(
          {"wrong expert", fmt::format("{}; the margin there is {}, far from a tie: the router, its bias or "
                                       "the dispatch of that layer is wrong",
                                       where, figure(*first.margin))});
    }
    return;
  }
}

bool performance(const std::string& metric) {
  static const std::set<std::string> kNames = {"throughput", "tpot", "latency", "mem-max-allocated-bytes"};
  return kNames.count(metric) != 0;
}

void diagnose_performance(const CaseVerdict& verdict, Diagnoses& found) {
  std::vector<std::string> slow;
  for (const MetricVerdict& metric : verdict.metrics) {
    if (passes(metric.verdict)) continue;
    if (!performance(metric.metric)) return;
    slow.push_back(metric.metric);
  }
  if (slow.empty() || passes(verdict.verdict)) return;
  found.push_back({"performance", fmt::format("only {} fail{}: the engine says the same, at another speed or size than "
                                              "the golden's noise allows",
                                              fmt::join(slow, ", "), slow.size() == 1 ? "s" : "")});
}

}  // namespace

std::optional<Verdict> verdict_of(const CaseVerdict& verdict, const std::string& metric) {
  for (const MetricVerdict& judged : verdict.metrics) {
    if (judged.metric == metric) return judged.verdict;
  }
  return std::nullopt;
}

void diagnose_numbers(const CaseVerdict& verdict, Diagnoses& found) {
  const std::optional<Verdict> text = verdict_of(verdict, "generated_text");
  const std::optional<Verdict> tokens = verdict_of(verdict, "generated_tokens");
  if (text && tokens && *text == Verdict::kDiverged && *tokens == Verdict::kIdentical) {
    found.push_back({"detokenisation",
                     "all tokens agree and the text does not: the ids were turned into text in another "
                     "way (tokenizer file, special tokens, white space, clean-up)"});
  }
  if (found.empty()) diagnose_logprobs(verdict, found);
  if (numbers_only(verdict) || found.empty()) diagnose_routing(verdict, found);
}

void diagnose_rest(const ReportCase& report, Diagnoses& found) {
  const CaseVerdict& verdict = report.verdict;
  diagnose_performance(verdict, found);
  if (!found.empty()) return;
  const std::string hint = environment_hint(verdict);
  if (verdict.verdict == Verdict::kFlaky) {
    found.push_back({"not deterministic",
                     "repeats with the same inputs on the same machine disagree: look for races, "
                     "atomics, memory that is not set, and choices that depend on timing"});
  } else if (verdict.verdict == Verdict::kNotComparable && verdict.golden.empty()) {
    found.push_back({"no golden", "no golden file judges this case here; 'assay record' writes one for review"});
  } else if (!passes(verdict.verdict) && !hint.empty()) {
    found.push_back({"perhaps the environment", "since the golden was made this changed: " + hint});
  }
}

}  // namespace assay::report
