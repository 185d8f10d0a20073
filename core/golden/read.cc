#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "assay/golden.h"
#include "core/golden/file.h"
#include "core/golden/json_text.h"
#include "core/golden/result_builder.h"
#include "core/golden/text.h"

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

// "line:column" of a byte offset, both from 1.
std::string position(std::string_view text, size_t offset) {
  const std::string_view before = text.substr(0, std::min(offset, text.size()));
  const size_t line = static_cast<size_t>(std::count(before.begin(), before.end(), '\n')) + 1;
  const size_t newline = before.rfind('\n');
  const size_t column = newline == std::string_view::npos ? before.size() : before.size() - newline - 1;
  return fmt::format("{}:{}", line, std::max<size_t>(column, 1));
}

// One pass over a document. `place` names it in messages.
Status parse(std::string_view document, const std::string& place, ResultSet& set, bool& was_string,
             std::string& inner) {
  if (document.find_first_not_of(" \t\r\n") == std::string_view::npos) {
    return invalid(place + " is empty; expected a JSON object of requests");
  }
  const json::Blanked blanked = json::blank_nonfinite(document);
  const std::string_view text = blanked.text(document);
  json::ResultBuilder builder(set, blanked.nonfinite);
  if (nlohmann::json::sax_parse(text.data(), text.data() + text.size(), &builder)) {
    was_string = builder.was_string();
    inner = std::move(builder.top_string());
    return {};
  }
  if (builder.error_offset() == std::string::npos) return invalid(fmt::format("{}: {}", place, builder.error()));
  return invalid(
      fmt::format("{}:{}: not valid JSON: {}", place, position(text, builder.error_offset()), builder.error()));
}

}  // namespace

Result<ResultSet> read_results_text(std::string_view json, const std::string& name) {
  ResultSet set;
  set.path = name;
  bool was_string = false;
  std::string inner;
  if (Status status = parse(json, name, set, was_string, inner); !status.ok()) return status;
  if (was_string) {
    set.string_wrapped = true;
    const std::string document = std::move(inner);
    const std::string place = name + " (inside its string)";
    if (Status status = parse(document, place, set, was_string, inner); !status.ok()) return status;
    if (was_string) return invalid(place + " holds one more string; expected an object of requests");
  }
  std::sort(set.requests.begin(), set.requests.end(),
            [](const RequestRecord& a, const RequestRecord& b) { return request_id_less(a.id, b.id); });
  set.form = form_of(set);
  return set;
}

Result<ResultSet> read_results(const std::string& path) {
  Result<std::string> content = read_file(path);
  if (!content) return content.status();
  return read_results_text(*content, path);
}

}  // namespace assay
