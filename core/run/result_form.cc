#include "core/run/result_form.h"

#include <algorithm>
#include <cstdlib>
#include <string>
#include <utility>

namespace assay::run {
namespace {

bool has_graph_map(const RequestRecord& record) {
  return std::any_of(record.extra.begin(), record.extra.end(),
                     [](const auto& field) { return field.first == "cuda_graph_request_count_map"; });
}

constexpr const char* kSteps = "step_count";

// The script asks the engine when all requests have ended: one number for all.
void share_steps(ResultSet* results) {
  long long most = -1;
  const auto each = [&](const auto& visit) {
    for (RequestRecord& record : results->requests) {
      for (auto& [name, value] : record.extra) {
        if (name == kSteps) visit(value);
      }
    }
  };
  each([&](const std::string& value) { most = std::max(most, std::atoll(value.c_str())); });
  if (most >= 0) each([&](std::string& value) { value = std::to_string(most); });
}

// Lists that nobody asked for are null there, not absent.
void add_null(const char* name, bool absent, RequestRecord* record) {
  const auto same = [&](const auto& field) { return field.first == name; };
  if (absent && std::none_of(record->extra.begin(), record->extra.end(), same))
    record->extra.emplace_back(name, "null");
}

// The last G values are those of the generated tokens.
void split_logprobs(RequestRecord* record) {
  if (!record->logprobs || record->generated_logprobs) return;
  const std::vector<double>& all = *record->logprobs;
  const size_t generated = std::min(record->tokens ? record->tokens->size() : 0, all.size());
  const auto middle = all.end() - static_cast<ptrdiff_t>(generated);
  record->prompt_logprobs.emplace(all.begin(), middle);
  record->generated_logprobs.emplace(middle, all.end());
}

}  // namespace

void set_form(ResultSet* results) {
  results->form = GoldenForm::kStatic;
  if (results->requests.empty() || !has_graph_map(results->requests.front())) return;
  results->form = GoldenForm::kDynamic;
  for (RequestRecord& record : results->requests) {
    split_logprobs(&record);
    add_null("top_n_logprobs", !record.top_n, &record);
    add_null("prompt_top_n_logprobs", !record.prompt_top_n, &record);
  }
  share_steps(results);
}

void keep_every(size_t every, ResultSet* results) {
  std::vector<RequestRecord> kept;
  for (size_t i = 0; i < results->requests.size(); ++i) {
    if (i % every == 0 || i + 1 == results->requests.size()) kept.push_back(std::move(results->requests[i]));
  }
  results->requests = std::move(kept);
}

size_t kept_of(size_t requests, size_t every) {
  const size_t regular = (requests + every - 1) / every;
  return requests > 0 && (requests - 1) % every != 0 ? regular + 1 : regular;
}

}  // namespace assay::run
