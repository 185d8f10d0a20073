// Causes seen in the tokens: edits of a list, and what re-anchoring tells.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/report/diagnosis_rules.h"
#include "core/report/html_text.h"

namespace assay::report {
namespace {

constexpr size_t kEnough = 4;  // equal tokens in a row that are no coincidence
constexpr size_t kStuck = 8;   // repetitions of one token
constexpr double kMost = 0.2;  // share of positions from which on a fault is everywhere
constexpr int64_t kNeighbourhood = 16;

// Whether a[i..] and b[j..] agree over their common length, and how long that is.
size_t agree(const std::vector<int32_t>& a, size_t i, const std::vector<int32_t>& b, size_t j) {
  if (i >= a.size() || j >= b.size()) return 0;
  const size_t length = std::min(a.size() - i, b.size() - j);
  return std::equal(a.begin() + static_cast<ptrdiff_t>(i), a.begin() + static_cast<ptrdiff_t>(i + length),
                    b.begin() + static_cast<ptrdiff_t>(j))
             ? length
             : 0;
}

std::string shown(const TokenView& token) {
  return token.text.empty() ? fmt::format("token {}", token.id) : fmt::format("\"{}\"", token.text);
}

bool text_agrees(const RequestEvidence& evidence) {
  return !evidence.golden_text.empty() && evidence.text_difference < 0 && evidence.golden_text == evidence.result_text;
}

// Whether the logprobs behind the first `at` + 1 tokens of the window differ by more than the tolerance: then those
// tokens were computed from other numbers, equal as they are. Where none is known they are taken to agree.
bool numbers_moved(const RequestEvidence& evidence, size_t at) {
  constexpr double kUnknownTolerance = 1e-3;  // nats
  const double tolerance = evidence.logprobs ? evidence.logprobs->tolerance : kUnknownTolerance;
  for (size_t i = at + 1; i < evidence.tokens.size(); ++i) {
    const AlignedToken& token = evidence.tokens[i];
    if (!token.golden || !token.result || !token.golden->logprob || !token.result->logprob) continue;
    if (std::fabs(*token.golden->logprob - *token.result->logprob) > tolerance) return true;
  }
  return false;
}

// A token that was changed and yet had no consequence. Results of a relation lie in no file that somebody edits.
Diagnosis changed_alone(const RequestEvidence& evidence, const Window& window, size_t after, bool relation) {
  const size_t at = *window.differs;
  const auto position = window.first + static_cast<int64_t>(at);
  std::string why = fmt::format(
      "request {}: token {} alone differs and the {} after it are the same, although each "
      "depends on the ones before. An engine hardly goes on from another token unmoved, so one of "
      "the two lists seems to have been changed after it was computed",
      evidence.request, position, after);
  const std::optional<Reanchoring>& again = evidence.reanchoring;
  if (again && !again->method.empty() && !again->reproduced) {
    return {"a token changed on its way out",
            why + ". Run again, the engine itself prefers the golden's token: the output path changed it"};
  }
  if (relation) return {"a token changed on its way out", why};
  if (again && !again->method.empty() && again->true_splits > 0) {
    return {"an altered golden",
            why + fmt::format(". Run again, the engine prefers its own token once more{}: the "
                              "golden's token was altered; see its history",
                              evidence.split && evidence.split->golden_rank
                                  ? fmt::format(" and ranks the golden's at place {}", *evidence.split->golden_rank + 1)
                                  : std::string())};
  }
  if (text_agrees(evidence)) why += ". The texts agree, so the token list does not belong to its own text";
  return {"a single token changed afterwards", why + ": a golden edited by hand, or a fault of the output path"};
}

std::optional<Diagnosis> edit_of(const RequestEvidence& evidence, bool relation) {
  const Window window = window_of(evidence);
  if (!window.differs) return std::nullopt;
  const size_t at = *window.differs;
  const auto position = window.first + static_cast<int64_t>(at);
  const std::vector<int32_t>& golden = window.golden;
  const std::vector<int32_t>& result = window.result;
  if (at + 1 < golden.size() && at + 1 < result.size() && golden[at] == result[at + 1] &&
      golden[at + 1] == result[at] && agree(golden, at + 2, result, at + 2) >= kEnough) {
    return Diagnosis{"two tokens exchanged", fmt::format("request {}: tokens {} and {} stand in the other order, all "
                                                         "after them agree: a fault in collecting the output",
                                                         evidence.request, position, position + 1)};
  }
  if (const size_t after = agree(golden, at + 1, result, at + 1); after >= kEnough) {
    if (numbers_moved(evidence, at)) return std::nullopt;  // a text known by heart is found again after a fault
    return changed_alone(evidence, window, after, relation);
  }
  if (agree(golden, at + 1, result, at) >= kEnough) {
    return Diagnosis{"a token dropped", fmt::format("request {}: the golden's token {} is missing and all that follow "
                                                    "moved up by one: a step of the output was lost",
                                                    evidence.request, position)};
  }
  if (agree(golden, at, result, at + 1) >= kEnough) {
    const bool twice = at > 0 && result[at] == result[at - 1];
    return Diagnosis{
        twice ? "a token repeated" : "a token inserted",
        fmt::format("request {}: token {} is one too many{} and all that follow moved down by one{}", evidence.request,
                    position, twice ? ", a repetition of the one before," : "",
                    position == 0 ? ": at the very start, as if the prompt's last token had not been seen" : "")};
  }
  const auto tail = result.begin() + static_cast<ptrdiff_t>(at);
  if (result.size() >= at + kStuck && std::all_of(tail, result.end(), [&](int32_t id) { return id == *tail; })) {
    return Diagnosis{"one token over and over",
                     fmt::format("request {}: from token {} on the engine repeats token {} {} times: the step's output "
                                 "does not reach the next step, or the logits are constant",
                                 evidence.request, position, *tail, result.size() - at)};
  }
  return std::nullopt;
}

std::optional<Diagnosis> length_of(const RequestEvidence& evidence) {
  const Window window = window_of(evidence);
  if (window.differs || evidence.golden_tokens < 0 || evidence.result_tokens < 0) return std::nullopt;
  if (evidence.first_divergent >= 0 &&
      evidence.first_divergent < std::min(evidence.golden_tokens, evidence.result_tokens)) {
    return std::nullopt;
  }
  if (evidence.result_tokens < evidence.golden_tokens) {
    return Diagnosis{"stopped early", fmt::format("request {}: all {} tokens agree, then the result ends; the golden "
                                                  "has {}: a stop condition, a limit, or output that was cut",
                                                  evidence.request, evidence.result_tokens, evidence.golden_tokens)};
  }
  if (evidence.result_tokens > evidence.golden_tokens) {
    return Diagnosis{"ran on", fmt::format("request {}: the golden's {} tokens agree, then the result goes on to {}: a "
                                           "stop condition or limit that did not hold",
                                           evidence.request, evidence.golden_tokens, evidence.result_tokens)};
  }
  return std::nullopt;
}

// Sums over all requests that were run again.
struct Again {
  size_t requests = 0;
  size_t reproduced = 0;
  uint64_t positions = 0;
  uint64_t near_ties = 0;
  uint64_t routing_ties = 0;
  uint64_t true_splits = 0;
  bool all_explained = true;
  std::string contradiction;                     // the first one, with its request
  const RequestEvidence* first_split = nullptr;  // of the first request with a true split
};

Again again_of(const CaseVerdict& verdict) {
  Again sum;
  for (const RequestEvidence& evidence : verdict.evidence) {
    if (evidence.first_divergent < 0) continue;
    if (!evidence.reanchoring || evidence.reanchoring->method.empty()) {
      sum.all_explained = false;
      continue;
    }
    const Reanchoring& one = *evidence.reanchoring;
    ++sum.requests;
    sum.reproduced += one.reproduced ? 1 : 0;
    sum.positions += one.positions;
    sum.near_ties += one.near_ties;
    sum.routing_ties += one.routing_ties;
    sum.true_splits += one.true_splits;
    const std::string& against = one.contradiction.empty() ? one.text_contradiction : one.contradiction;
    if (sum.contradiction.empty() && !against.empty()) {
      sum.contradiction = fmt::format("request {}: {}", evidence.request, against);
    }
    sum.all_explained = sum.all_explained && one.explains() && against.empty();
    if (one.true_splits > 0 && sum.first_split == nullptr) sum.first_split = &evidence;
  }
  return sum;
}

std::string local_split(const RequestEvidence& evidence) {
  for (const Split& split : evidence.reanchoring->splits) {
    if (split.near_tie || split.routing_tie) continue;
    std::string text = fmt::format(" (request {}, token {}: the golden has {}, the engine prefers {}", evidence.request,
                                   split.index, shown(split.golden), shown(split.result));
    if (split.gap) text += fmt::format(" by {} nats", figure(*split.gap));
    if (split.golden_rank) text += fmt::format(", the golden's ranks at place {}", *split.golden_rank + 1);
    return text + ")";
  }
  return "";
}

}  // namespace

Window window_of(const RequestEvidence& evidence) {
  Window window;
  window.first = evidence.first_shown;
  bool golden = true;
  bool result = true;
  for (const AlignedToken& token : evidence.tokens) {
    golden = golden && token.golden && token.golden->id >= 0;
    result = result && token.result && token.result->id >= 0;
    if (golden) window.golden.push_back(token.golden->id);
    if (result) window.result.push_back(token.result->id);
  }
  const size_t length = std::min(window.golden.size(), window.result.size());
  for (size_t i = 0; i < length && !window.differs; ++i) {
    if (window.golden[i] != window.result[i]) window.differs = i;
  }
  return window;
}

void diagnose_edits(const ReportCase& report, Diagnoses& found) {
  const CaseVerdict& verdict = report.verdict;
  const Again again = again_of(verdict);
  if (again.requests > 0 && again.all_explained) return;  // rounding, see below
  const auto add_first = [&](const auto& rule) {          // of the requests that it says something of
    for (const RequestEvidence& evidence : verdict.evidence) {
      if (std::optional<Diagnosis> one = rule(evidence)) return found.push_back(*std::move(one));
    }
  };
  add_first([&](const RequestEvidence& evidence) { return edit_of(evidence, !report.relation.empty()); });
  add_first(length_of);
}

void diagnose_reanchoring(const ReportCase& report, Diagnoses& found) {
  const CaseVerdict& verdict = report.verdict;
  const Again again = again_of(verdict);
  if (again.requests == 0) return;
  const uint64_t splits = again.near_ties + again.routing_ties + again.true_splits;
  const std::string counts = fmt::format("with the golden tokens fed back, {} of {} positions agree",
                                         again.positions - std::min(again.positions, splits), again.positions);
  if (again.all_explained) {
    found.push_back(
        {"rounding", fmt::format("{}, {} near-tie{} and none is a true split: the two sides differ only where "
                                 "the candidates were as good as equal",
                                 counts, again.near_ties, again.near_ties == 1 ? " is left" : "s are left")});
    return;
  }
  if (!found.empty()) return;  // something that was seen directly says more
  if (!again.contradiction.empty()) {
    found.push_back({"output changed on its way out",
                     fmt::format("{}. The tie is real, but it does not explain what the judged run put out: look at "
                                 "sampling, stop conditions, detokenizing and how the output was collected",
                                 again.contradiction)});
    return;
  }
  if (again.true_splits == 0 && again.reproduced < again.requests) {
    found.push_back(
        {"a run that does not repeat itself",
         fmt::format("{} and none is a true split: run again, the engine no longer takes the token that it "
                     "took in the judged run. Its arithmetic is right; look at sampling, races, and how the "
                     "output was collected",
                     counts)});
  } else if (again.true_splits == 0 && again.routing_ties > 0) {
    found.push_back({"experts chosen otherwise at a tie",
                     fmt::format("{}, the others follow a router's choice of experts that was as good as a tie: "
                                 "rounding in front of the router may explain it",
                                 counts)});
  } else if (again.true_splits > 0) {
    const double share =
        static_cast<double>(again.true_splits) / static_cast<double>(std::max<uint64_t>(again.positions, 1));
    const std::string split = local_split(*again.first_split);
    if (share >= kMost) {
      found.push_back({"a difference everywhere", fmt::format("{}, {} are true splits{}: the model computes something "
                                                              "else throughout (weights, positions, attention, dtype)",
                                                              counts, again.true_splits, split)});
    } else {
      const std::vector<Split>& listed = again.first_split->reanchoring->splits;
      const bool near = listed.empty() || listed.back().index - listed.front().index <= kNeighbourhood;
      found.push_back(
          {again.true_splits == 1 ? "a fault at one position" : "a fault at few positions",
           fmt::format("{}, {} {}{}: {} and the rest agrees, so {}the engine fails in that place only", counts,
                       again.true_splits, again.true_splits == 1 ? "is a true split" : "are true splits", split,
                       near ? "the fault is local" : "the fault comes and goes",
                       report.relation.empty() ? "the golden was altered there or " : "")});
    }
  }
}

}  // namespace assay::report
