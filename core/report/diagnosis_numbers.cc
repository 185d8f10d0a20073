// Causes seen in numbers while the tokens agree, and causes outside of any comparison.
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <iterator>
#include <string_view>

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

// Whether a value has no more bits than bf16 keeps.
bool in_bf16(double value) {
  const auto narrow = static_cast<float>(value);
  return static_cast<double>(narrow) == value && (std::bit_cast<uint32_t>(narrow) & 0xFFFFU) == 0;
}

std::optional<Diagnosis> coarse(const RequestEvidence& evidence, const Pairs& pairs) {
  const auto count = [](const std::vector<double>& values) {
    return std::count_if(values.begin(), values.end(), in_bf16);
  };
  const auto total = static_cast<ptrdiff_t>(pairs.result.size());
  if (pairs.result.size() < kEnoughPairs || count(pairs.result) < total || count(pairs.golden) * 2 > total) return {};
  return Diagnosis{
      "numbers kept in few bits",
      fmt::format("request {}: all {} logprobs of the result fit into bf16, the golden's do not: somewhere "
                  "logprobs or probabilities are rounded to it",
                  evidence.request, total)};
}

// Whether the result's logprobs are the golden's, one position later or earlier.
std::optional<Diagnosis> shifted(const RequestEvidence& evidence, const Pairs& pairs) {
  const std::vector<double>& a = pairs.golden;
  const std::vector<double>& b = pairs.result;
  if (a.size() <= kEnoughPairs || a == b) return std::nullopt;
  const bool later = std::equal(a.begin(), a.end() - 1, b.begin() + 1);
  const bool earlier = std::equal(a.begin() + 1, a.end(), b.begin());
  if (!later && !earlier) return std::nullopt;
  return Diagnosis{"logprobs at the wrong position",
                   fmt::format("request {}: the result's logprobs are the golden's, one position {}: values and tokens "
                               "were paired wrongly",
                               evidence.request, later ? "late" : "early")};
}

std::optional<Diagnosis> regular(const RequestEvidence& evidence) {
  const Pairs pairs = pairs_of(evidence);
  if (std::optional<Diagnosis> one = shifted(evidence, pairs)) return one;
  if (std::optional<Diagnosis> one = coarse(evidence, pairs)) return one;
  std::vector<double> differences;
  std::vector<double> ratios;
  for (size_t i = 0; i < pairs.golden.size(); ++i) {
    differences.push_back(pairs.result[i] - pairs.golden[i]);
    if (std::abs(pairs.golden[i]) > kSmallestLogprob) ratios.push_back(pairs.result[i] / pairs.golden[i]);
  }
  if (const std::optional<double> ratio = constant(ratios); ratio && *ratio > 0.05 && std::abs(*ratio - 1) > 0.01) {
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
  if (judged != Verdict::kDrift && judged != Verdict::kEquivalent) return;
  size_t single = 0;  // requests with one value beyond tolerance that stands alone
  size_t beyond = 0;  // requests with any
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
    beyond += evidence.logprobs->over > 0 ? 1 : 0;
    single += evidence.logprobs->over == 1 && evidence.logprobs->max > 20 * evidence.logprobs->mean ? 1 : 0;
    count += evidence.logprobs->count;
    if (worst == nullptr || evidence.logprobs->max > worst->logprobs->max) worst = &evidence;
  }
  if (worst == nullptr || !numbers_only(verdict)) return;
  const LogprobStatistics& numbers = *worst->logprobs;
  const std::string largest = fmt::format("the largest difference is {} nats, request {} index {}", figure(numbers.max),
                                          worst->request, numbers.max_index);
  const std::string hint = environment_hint(verdict);
  if (beyond > 0 && single == beyond) {
    found.push_back({"a single logprob",
                     fmt::format("{} of {} logprobs {} beyond tolerance{} and the tokens agree; {}: single values were "
                                 "altered, the arithmetic around them is right",
                                 over, count, over == 1 ? "is" : "are", over == 1 ? "" : ", one a request,", largest)});
  } else if (over > 0) {
    // Default tolerances lie well above what another order of summation does, see docs/metrics.md.
    constexpr double kLarge = 20;  // times the tolerance
    const bool large = numbers.max > kLarge * numbers.tolerance;
    const std::string_view explanation =
        large ? ": far more than another order of summation makes; look for a lower dtype, wrong positions, entries of "
                "the KV cache, a mask or weights"
              : ": another order of summation, kernel or rounding point";
    found.push_back(
        {large ? "numbers far apart" : "numeric drift",
         fmt::format("the tokens agree, {} of {} logprobs in {} request{} are beyond the tolerance of {}; {}{}", over,
                     count, beyond, beyond == 1 ? "" : "s", figure(numbers.tolerance), largest,
                     hint.empty() ? std::string(explanation) : ". What changed since the golden was made: " + hint)});
  } else if (passes(verdict.verdict)) {
    found.push_back({"differences within tolerance",
                     fmt::format("the tokens agree and every logprob is within the tolerance of {}; {}",
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

bool performance(std::string_view metric) {
  constexpr std::string_view kNames[] = {"throughput", "tpot", "latency", "mem-max-allocated-bytes"};
  return std::find(std::begin(kNames), std::end(kNames), metric) != std::end(kNames);
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
  if (text && !passes(*text) && *text != Verdict::kNotComparable && tokens == Verdict::kIdentical && found.empty()) {
    found.push_back({"detokenisation",
                     "all tokens agree and the text does not: the ids were turned into text in another "
                     "way (tokenizer file, special tokens, white space, clean-up), or the text was cut "
                     "or changed afterwards"});
  }
  if (found.empty()) diagnose_logprobs(verdict, found);
  if (numbers_only(verdict) || found.empty()) diagnose_routing(verdict, found);
}

namespace {

// What the runner says about the end of an engine, and about answers that nobody can use.
void diagnose_reason(const CaseVerdict& verdict, Diagnoses& found) {
  struct Sign {
    Verdict verdict;
    std::string_view words;
    const char* cause;
    const char* sentence;
  };
  constexpr Sign kSigns[] = {
      {Verdict::kCrashed, "SIGSEGV", "an invalid memory access", "the engine read or wrote memory that is not its own"},
      {Verdict::kCrashed, "SIGBUS", "an invalid memory access",
       "a mapped file was cut short, or memory was misaligned"},
      {Verdict::kCrashed, "SIGABRT", "the engine aborted itself",
       "an assertion, an uncaught exception or a broken heap"},
      {Verdict::kCrashed, "SIGFPE", "an arithmetic trap", "an integer division by zero or an overflow"},
      {Verdict::kCrashed, "SIGILL", "an instruction this machine lacks", "the binary was built for another processor"},
      {Verdict::kCrashed, "no verdict after", "a hang", "the engine did not finish within the time limit of the case"},
      {Verdict::kCrashed, "the limit is", "out of memory", "the engine took more memory than the case may use"},
      {Verdict::kCrashed, "exit code", "the engine ended the process", "something in it called exit"},
      {Verdict::kCrashed, "did not finish", "the run was killed",
       "whether the engine is to blame cannot be told from here"},
      {Verdict::kInvalid, "never answered it", "a lost request",
       "the engine forgot a request: its queue or its end "
       "condition is wrong"},
      {Verdict::kInvalid, "never asked", "an answer nobody asked for", "the engine's request ids are mixed up"},
      {Verdict::kInvalid, "a second time", "a request answered twice", "the engine does not drop what is finished"},
  };
  for (const Sign& sign : kSigns) {
    if (verdict.verdict != sign.verdict || verdict.reason.find(sign.words) == std::string::npos) continue;
    found.push_back({sign.cause, sign.sentence});
    return;
  }
}

}  // namespace

void diagnose_rest(const ReportCase& report, Diagnoses& found) {
  const CaseVerdict& verdict = report.verdict;
  if (found.empty()) diagnose_reason(verdict, found);
  diagnose_performance(verdict, found);
  if (!found.empty()) return;
  const std::string hint = environment_hint(verdict);
  if (verdict.verdict == Verdict::kFlaky) {
    found.push_back({"not deterministic",
                     "repeats with the same inputs on the same machine disagree: look for races, "
                     "atomics, memory that is not set, and choices that depend on timing"});
  } else if (verdict.verdict == Verdict::kNotComparable && verdict.golden.empty() && report.relation.empty()) {
    found.push_back({"no golden", "no golden file judges this case here; 'assay record' writes one for review"});
  } else if (!passes(verdict.verdict) && !hint.empty()) {
    found.push_back({"perhaps the environment", "since the golden was made this changed: " + hint});
  }
}

}  // namespace assay::report
