// Causes around requests: prompts, exchanged outputs, left-over state, broken output.
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "core/report/diagnosis_rules.h"
#include "core/report/html_text.h"

namespace assay::report {
namespace {

constexpr size_t kEnoughTokens = 4;  // of a coincidence: ids that agree by chance are rarer than one in 4096^4
constexpr size_t kEnoughBytes = 12;

bool ends_with(const std::vector<int32_t>& all, const std::vector<int32_t>& tail) {
  return all.size() >= tail.size() && std::equal(tail.rbegin(), tail.rend(), all.rbegin());
}

bool starts_with(const std::vector<int32_t>& all, const std::vector<int32_t>& head) {
  return all.size() >= head.size() && std::equal(head.begin(), head.end(), all.begin());
}

std::string prompt_fault(const RequestEvidence& evidence) {
  const std::vector<int32_t>& golden = evidence.golden_prompt_ids;
  const std::vector<int32_t>& result = evidence.result_prompt_ids;
  if (golden.empty() || result.empty()) return "";
  const std::string sizes = fmt::format("{} prompt tokens instead of {}", result.size(), golden.size());
  if (result.size() == golden.size() + 1 && ends_with(result, golden)) {
    if (result[0] == golden[0]) {
      return fmt::format("{}: the first token, {}, stands twice (a doubled beginning-of-sequence token)", sizes,
                         result[0]);
    }
    return fmt::format("{}: token {} was put in front", sizes, result[0]);
  }
  if (golden.size() == result.size() + 1 && ends_with(golden, result)) {
    return fmt::format("{}: the golden's first token, {}, is missing", sizes, golden[0]);
  }
  if (result.size() < golden.size() && starts_with(golden, result)) return sizes + ": the prompt was cut at its end";
  if (result.size() < golden.size() && ends_with(golden, result))
    return sizes + ": the prompt was cut at its beginning";
  const auto at = std::mismatch(golden.begin(), golden.end(), result.begin(), result.end()).first - golden.begin();
  return fmt::format(
      "{} prompt tokens, the golden has {}; they first differ at index {}: another tokenizer, chat "
      "template or normalisation",
      result.size(), golden.size(), at);
}

// Whether `result` of one request is the golden of another.
bool same_output(const RequestEvidence& result, const RequestEvidence& golden) {
  const Window a = window_of(result);
  const Window b = window_of(golden);
  if (a.first == b.first && a.result.size() >= kEnoughTokens && b.golden.size() >= kEnoughTokens) {
    const size_t length = std::min(a.result.size(), b.golden.size());
    return std::equal(a.result.begin(), a.result.begin() + static_cast<ptrdiff_t>(length), b.golden.begin());
  }
  const std::string& text = result.result_text;
  return result.text_offset == golden.text_offset && text.size() >= kEnoughBytes && text == golden.golden_text;
}

void diagnose_exchange(const CaseVerdict& verdict, Diagnoses& found) {
  for (const RequestEvidence& result : verdict.evidence) {
    if (same_output(result, result)) continue;
    for (const RequestEvidence& golden : verdict.evidence) {
      if (&golden == &result || !same_output(result, golden)) continue;
      const bool both = same_output(golden, result);
      found.push_back({"output of another request",
                       fmt::format("request {} was answered with the golden output of request {}{}: the requests were "
                                   "mixed up on their way through the engine, the arithmetic is not to blame",
                                   result.request, golden.request, both ? ", and the other way round" : "")});
      return;
    }
  }
}

struct RequestFinding {
  std::string id;
  bool fails = false;
  int64_t index = -1;
};

// What one metric says of each request, in the order of the requests.
std::vector<RequestFinding> request_findings(const CaseVerdict& verdict, const std::string& name) {
  std::vector<RequestFinding> list;
  for (const MetricVerdict& metric : verdict.metrics) {
    if (metric.metric != name) continue;
    for (const Finding& finding : metric.findings) {
      if (finding.note || finding.request.empty()) continue;
      if (list.empty() || list.back().id != finding.request) list.push_back({finding.request, false, -1});
      if (!passes(finding.verdict) && !list.back().fails) {
        list.back().fails = true;
        list.back().index = finding.index;
      }
    }
  }
  return list;
}

void diagnose_left_over(const CaseVerdict& verdict, Diagnoses& found) {
  const std::vector<RequestFinding> list = request_findings(verdict, "generated_tokens");
  if (list.size() < 2 || list[0].fails) return;
  const bool all_later = std::all_of(list.begin() + 1, list.end(), [](const RequestFinding& one) { return one.fails; });
  constexpr int64_t kEarly = 2;  // the state of another request is felt at once
  const bool at_once = std::all_of(list.begin() + 1, list.end(),
                                   [](const RequestFinding& one) { return one.index >= 0 && one.index <= kEarly; });
  if (!all_later || !at_once) return;
  found.push_back(
      {"state left over by the previous request",
       fmt::format("request {}, the first, is right; {} after it {} wrong from token {} on: the engine does "
                   "not start the next request clean (KV cache, positions, sampler)",
                   list[0].id, list.size() == 2 ? "the one" : fmt::format("all {}", list.size() - 1),
                   list.size() == 2 ? "is" : "are", list[1].index)});
}

void diagnose_fixed_position(const CaseVerdict& verdict, Diagnoses& found) {
  std::set<int64_t> positions;
  for (const RequestEvidence& evidence : verdict.evidence) positions.insert(evidence.first_divergent);
  if (verdict.evidence.size() < 3 || positions.size() != 1 || *positions.begin() < 4) return;
  found.push_back({"a fixed position", fmt::format("{} different requests all part at token {}: something that happens "
                                                   "at that position (end of a cache block, a limit), not the text",
                                                   verdict.evidence.size(), *positions.begin())});
}

bool says(const Finding& finding, std::initializer_list<std::string_view> words) {
  return std::any_of(words.begin(), words.end(),
                     [&](std::string_view word) { return finding.message.find(word) != std::string::npos; });
}

}  // namespace

void diagnose_prompts(const CaseVerdict& verdict, Diagnoses& found) {
  diagnose_exchange(verdict, found);
  if (!found.empty()) return;  // prompts that came with the output of another request differ, too
  std::vector<std::string> ids;
  std::string fault;
  for (const RequestEvidence& evidence : verdict.evidence) {
    const std::string one = prompt_fault(evidence);
    if (one.empty()) continue;
    if (fault.empty()) fault = one;
    ids.push_back(evidence.request);
  }
  if (!fault.empty()) {
    found.push_back(
        {"prompt processing", fmt::format("{}: {}. The engine answered another question; what differs after "
                                          "the prompt follows from that",
                                          requests_text(ids), fault)});
  }
}

void diagnose_requests(const CaseVerdict& verdict, Diagnoses& found) {
  if (found.empty()) diagnose_left_over(verdict, found);
  diagnose_fixed_position(verdict, found);
}

void diagnose_broken_output(const ReportCase& report, Diagnoses& found) {
  for (const MetricVerdict& metric : report.verdict.metrics) {
    for (const Finding& finding : metric.findings) {
      if (finding.note || finding.verdict != Verdict::kInvalid) continue;
      const std::string where = finding.request.empty() ? "" : fmt::format("request {}: ", finding.request);
      if (says(finding, {"NaN", "nan", "Infinity", "not finite"})) {
        const bool golden =
            finding.message.rfind("golden has", 0) == 0 || finding.message.rfind("reference has", 0) == 0;
        found.push_back({golden ? "the golden holds NaN or infinity" : "NaN or infinity",
                         where + finding.message +
                             (golden && report.relation.empty() ? ": the golden must be recorded again"
                                                                : ": the arithmetic broke at or before this position "
                                                                  "(overflow, division by zero, memory not set)")});
        return;
      }
      if (says(finding, {"is empty"})) {
        found.push_back({"empty output", where + finding.message});
        return;
      }
      if (says(finding,
               {"is in the golden but missing from the result", "is in the result but not in the golden",
                "is in the reference but missing from the result", "is in the result but not in the reference"})) {
        found.push_back({"another set of requests",
                         where + finding.message + ": compare the prompts of the case with those of the golden"});
        return;
      }
    }
  }
}

std::string requests_text(const std::vector<std::string>& ids) {
  if (ids.size() == 1) return "request " + ids[0];
  if (ids.size() <= 4) return fmt::format("requests {}", fmt::join(ids, ", "));
  return fmt::format("{} requests ({}, ...)", ids.size(), fmt::join(ids.begin(), ids.begin() + 3, ", "));
}

}  // namespace assay::report
