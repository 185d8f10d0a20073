#include "core/compare/checks.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/compare/check_prompts.h"
#include "core/golden/json_text.h"
#include "core/golden/text.h"

namespace assay::compare {
namespace {

class Faults {
 public:
  void add(std::string request, int64_t index, std::string message) {
    Finding finding;
    finding.verdict = Verdict::kInvalid;
    finding.request = std::move(request);
    finding.index = index;
    finding.message = std::move(message);
    found_.push_back(std::move(finding));
  }
  std::vector<Finding> take() { return std::move(found_); }

 private:
  std::vector<Finding> found_;
};

void check_filled(std::string_view side, const ResultSet& set, Faults& faults) {
  if (!set.requests.empty() || !set.quantities.empty()) return;
  faults.add("", -1, fmt::format("{} {} holds no request", side, set.path));
}

void check_ids(const ResultSet& golden, const ResultSet& actual, Faults& faults) {
  for (const RequestRecord& request : golden.requests) {
    if (actual.find(request.id) == nullptr) faults.add(request.id, -1, "is in the golden but missing from the result");
  }
  for (const RequestRecord& request : actual.requests) {
    if (golden.find(request.id) == nullptr) faults.add(request.id, -1, "is in the result but not in the golden");
  }
}

std::string spelled(double value) {
  std::string text;
  json::append_double(text, value);
  return text;
}

void check_values(std::string_view side, const std::string& request, std::string_view field,
                  const std::vector<double>& values, Faults& faults) {
  const auto bad = [](double value) { return !std::isfinite(value); };
  const auto first = std::find_if(values.begin(), values.end(), bad);
  if (first == values.end()) return;
  const auto index = first - values.begin();
  const auto count = std::count_if(first, values.end(), bad);
  faults.add(request, index,
             fmt::format("{} has {} at {}[{}]{}", side, spelled(*first), field, index,
                         count > 1 ? fmt::format(" ({} such values in all)", count) : ""));
}

void check_top(std::string_view side, const std::string& request, std::string_view field, const TopLists& lists,
               Faults& faults) {
  size_t entry = 0;
  for (size_t position = 0; position < lists.counts.size(); ++position) {
    for (uint32_t i = 0; i < lists.counts[position]; ++i, ++entry) {
      const TopEntry& top = lists.entries[entry];
      if (std::isfinite(top.logprob)) continue;
      faults.add(request, static_cast<int64_t>(position),
                 fmt::format("{} has {} at {}[{}][{}]", side, spelled(top.logprob), field, position,
                             text::quoted(top.text, 20)));
      return;
    }
  }
}

void check_finite(std::string_view side, const ResultSet& set, Faults& faults) {
  for (const RequestRecord& request : set.requests) {
    const auto list = [&](std::string_view field, const std::optional<std::vector<double>>& values) {
      if (values) check_values(side, request.id, field, *values, faults);
    };
    list("logprobs", request.logprobs);
    list("prompt_logprobs", request.prompt_logprobs);
    list("generated_logprobs", request.generated_logprobs);
    list("tpot", request.tpot);
    if (request.top_n) check_top(side, request.id, "top_n_logprobs", *request.top_n, faults);
    if (request.prompt_top_n) check_top(side, request.id, "prompt_top_n_logprobs", *request.prompt_top_n, faults);
    if (request.latency && !std::isfinite(*request.latency)) {
      faults.add(request.id, -1, fmt::format("{} has {} as latency", side, spelled(*request.latency)));
    }
  }
  for (const Quantity& quantity : set.quantities) {
    check_values(side, "", text::printable(quantity.name), quantity.values, faults);
  }
}

}  // namespace

bool escapes_newlines(const ResultSet& set) {
  if (set.form != GoldenForm::kCoordinator) return false;
  bool escaped = false;
  for (const RequestRecord& request : set.requests) {
    for (const std::optional<std::string>* value : {&request.prompt, &request.text}) {
      if (!*value) continue;
      if ((*value)->find('\n') != std::string::npos) return false;
      escaped = escaped || (*value)->find("\\n") != std::string::npos;
    }
  }
  return escaped;
}

std::vector<Finding> nonfinite_values(std::string_view side, const ResultSet& set) {
  Faults faults;
  check_finite(side, set, faults);
  return faults.take();
}

std::vector<Finding> check_sets(const ResultSet& golden, const ResultSet& actual) {
  Faults faults;
  check_filled("golden", golden, faults);
  check_filled("result", actual, faults);
  check_ids(golden, actual, faults);
  check_prompts(golden, actual, [&](std::string request, int64_t index, std::string message) {
    faults.add(std::move(request), index, std::move(message));
  });
  check_finite("golden", golden, faults);
  check_finite("result", actual, faults);
  return faults.take();
}

}  // namespace assay::compare
