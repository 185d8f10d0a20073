#include "core/govern/merge.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "core/compare/checks.h"
#include "core/golden/text.h"
#include "core/govern/accept.h"
#include "core/govern/metric_part.h"

namespace assay::govern {
namespace {

bool takes_all(const std::vector<std::string>& metrics) {
  return std::find(metrics.begin(), metrics.end(), kAllMetrics) != metrics.end();
}

Status check_names(const ResultSet& recorded, const std::vector<std::string>& metrics) {
  for (const std::string& metric : metrics) {
    if (metric == kAllMetrics || has_metric(recorded, metric)) continue;
    return invalid(fmt::format("the pending golden holds no {}; it holds {}", text::quoted(metric, 60),
                               fmt::join(metrics_in(recorded), ", ")));
  }
  return {};
}

// Values of one metric mean nothing beside another question.
Status check_requests(const ResultSet& golden, const ResultSet& recorded) {
  for (const RequestRecord& request : recorded.requests) {
    const RequestRecord* old = golden.find(request.id);
    const char* what = old == nullptr                                                     ? "is new"
                       : old->prompt && request.prompt && *old->prompt != *request.prompt ? "has another prompt"
                                                                                          : nullptr;
    if (what == nullptr) continue;
    return invalid(fmt::format("request {} of the pending golden {}: only the whole can be accepted (--all)",
                               text::printable(request.id), what));
  }
  for (const RequestRecord& request : golden.requests) {
    if (recorded.find(request.id) != nullptr) continue;
    return invalid(fmt::format("the pending golden lacks request {}: only the whole can be accepted (--all)",
                               text::printable(request.id)));
  }
  return {};
}

// The request at which the two sets hold different completions, told by tokens where both know them, else by text.
std::string first_other_completion(const ResultSet& golden, const ResultSet& recorded) {
  const bool tokens = has_metric(golden, "generated_tokens") && has_metric(recorded, "generated_tokens");
  return first_difference(golden, recorded, tokens ? "generated_tokens" : "generated_text");
}

// No field of the merged golden may belong to other tokens than its neighbours.
Status check_halves(const ResultSet& golden, const ResultSet& recorded, const std::vector<std::string>& metrics) {
  const std::string request = first_other_completion(golden, recorded);
  if (request.empty()) return {};
  std::set<std::string> taken;
  for (const std::string& metric : metrics) {
    if (follows_tokens(metric)) taken.insert(part_of(metric));
  }
  if (taken.empty()) return {};
  for (const std::string& metric : metrics_in(golden)) {
    if (!follows_tokens(metric) || taken.count(metric) != 0) continue;
    if (first_difference(golden, recorded, metric).empty()) continue;
    return invalid(
        fmt::format("{} cannot be accepted without {}: request {} holds other tokens, and the golden would "
                    "be of two runs; {}",
                    *taken.begin(), metric, text::printable(request),
                    has_metric(recorded, metric)
                        ? fmt::format("add --metric {}", metric)
                        : fmt::format("the pending golden has no {}: record it with an engine that supplies "
                                      "it",
                                      metric)));
  }
  return {};
}

std::string escaped_newlines(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == '\n') {
      out += "\\n";
    } else {
      out += c;
    }
  }
  return out;
}

// Recorded texts in the golden's own spelling of newlines.
ResultSet in_spelling_of(const ResultSet& golden, ResultSet recorded) {
  if (!compare::escapes_newlines(golden) || compare::escapes_newlines(recorded)) return recorded;
  for (RequestRecord& request : recorded.requests) {
    if (request.text) request.text = escaped_newlines(*request.text);
    if (request.prompt) request.prompt = escaped_newlines(*request.prompt);
  }
  return recorded;
}

// The prompts of `recorded` and nothing else.
std::vector<RequestRecord> prompts_of(const ResultSet& recorded) {
  std::vector<RequestRecord> requests;
  for (const RequestRecord& request : recorded.requests) {
    RequestRecord& made = requests.emplace_back();
    made.id = request.id;
    made.prompt = request.prompt;
    made.prompt_ids = request.prompt_ids;
  }
  return requests;
}

// Every request as it was recorded, with those fields of the old one that the recording does not know.
std::vector<RequestRecord> whole_requests(const ResultSet& golden, const ResultSet& recorded) {
  std::vector<RequestRecord> requests = recorded.requests;
  for (RequestRecord& request : requests) {
    const RequestRecord* old = golden.find(request.id);
    if (old == nullptr) continue;
    for (const auto& field : old->extra) {
      const bool known = std::any_of(request.extra.begin(), request.extra.end(),
                                     [&](const auto& at) { return at.first == field.first; });
      if (!known) request.extra.push_back(field);
    }
  }
  return requests;
}

}  // namespace

Result<ResultSet> merge(const ResultSet& golden, const ResultSet& given, const std::vector<std::string>& metrics) {
  const ResultSet recorded = in_spelling_of(golden, given);
  const bool whole = takes_all(metrics);
  const bool first = golden.requests.empty();
  if (Status status = check_names(recorded, metrics); !status.ok()) return status;
  std::vector<std::string> taken = whole ? metrics_in(recorded) : metrics;
  if (!first && !whole) {
    if (Status status = check_requests(golden, recorded); !status.ok()) return status;
  }
  if (!first) {
    if (Status status = check_halves(golden, recorded, taken); !status.ok()) return status;
  }
  ResultSet merged = golden;
  if (first) merged.requests = prompts_of(recorded);
  if (whole) merged.requests = whole_requests(golden, recorded);
  for (const std::string& metric : taken) take_metric(merged, recorded, metric);
  return merged;
}

}  // namespace assay::govern
