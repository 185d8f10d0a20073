#include <algorithm>
#include <optional>
#include <utility>

#include "assay/golden.h"
#include "core/golden/fast_read.h"
#include "core/golden/file.h"
#include "core/golden/plain_read.h"

namespace assay {
namespace {

bool has_extra(const RequestRecord& request, std::string_view name) {
  return std::any_of(request.extra.begin(), request.extra.end(),
                     [&](const auto& entry) { return entry.first == name; });
}

GoldenForm form_of(const ResultSet& set) {
  if (set.requests.empty()) return GoldenForm::kOther;
  const RequestRecord& first = set.requests.front();
  if (first.tpot) return GoldenForm::kStatic;
  if (has_extra(first, "cuda_graph_request_count_map")) return GoldenForm::kDynamic;
  if (has_extra(first, "step_count") || has_extra(first, "ttft")) return GoldenForm::kApi;
  const bool numbers = first.logprobs || first.latency;
  if (first.text && !first.tokens && !numbers) return GoldenForm::kTextOnly;
  if (first.tokens && !first.text && !numbers) return GoldenForm::kTokensOnly;
  if (first.prompt && first.text && first.tokens && first.latency) return GoldenForm::kCoordinator;
  return GoldenForm::kOther;
}

}  // namespace

Result<ResultSet> read_results_text(std::string_view json, const std::string& name) {
  std::optional<ResultSet> fast = json::read_fast(json);
  Result<ResultSet> set = fast ? Result<ResultSet>(*std::move(fast)) : json::read_plainly(json, name);
  if (!set) return set;
  set->path = name;
  const auto before = [](const RequestRecord& a, const RequestRecord& b) { return request_id_less(a.id, b.id); };
  if (!std::is_sorted(set->requests.begin(), set->requests.end(), before)) {
    std::sort(set->requests.begin(), set->requests.end(), before);
  }
  set->form = form_of(*set);
  return set;
}

Result<ResultSet> read_results(const std::string& path) {
  Result<std::string> content = read_file(path);
  if (!content) return content.status();
  return read_results_text(*content, path);
}

}  // namespace assay
