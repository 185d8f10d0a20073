// Metric generated_text. A known completion judges up to the reference's first blank line; a characteristic text
// judges the whole common length. Either way the result must reach the reference's first blank line (a characteristic
// one's first behind any text), or its end where it has none: a mere beginning never passes.
#include <fmt/format.h>

#include <algorithm>

#include "assay/sdk.hpp"
#include "core/compare/comparator.h"
#include "core/compare/divergence.h"
#include "core/golden/text.h"

namespace {

using assay::compare::emit;
namespace text = assay::text;
namespace sdk = assay::sdk;

// The result's text equals the reference's as far as both are judged.
void emit_equal(const assay_sink& sink, const assay_pair& pair, std::string_view golden, std::string_view result,
                size_t judged, bool known) {
  const uint64_t compared = text::count(golden.substr(0, judged));
  std::string message = fmt::format("{} code points equal{}", compared,
                                    judged < golden.size() && known ? ", up to the first blank line" : "");
  if (judged < golden.size() && !known) {
    message +=
        fmt::format("; the result ends there, {} of the golden's are not reached", text::count(golden.substr(judged)));
  } else if (result.size() > golden.size()) {
    message += fmt::format("; the result goes on for {} more", text::count(result.substr(golden.size())));
  }
  emit(sink, {.kind = ASSAY_FINDING_EQUAL, .id = pair.id, .compared = compared, .message = std::move(message)});
  const size_t equal = text::common_prefix(golden, result);
  if (!known || judged == golden.size() || equal == std::min(golden.size(), result.size())) return;
  emit(sink, {.kind = ASSAY_FINDING_NOTE,
              .id = pair.id,
              .index = static_cast<int64_t>(text::count(golden.substr(0, equal))),
              .message = "after the blank line, where nothing judges, " +
                         assay::compare::describe_text_difference(*pair.reference, *pair.candidate)});
}

// Bytes of a characteristic text that the result must reach: up to its first blank line behind any text. Before the
// blank line that a text begins with stands nothing, and nothing to reach would let a single character pass.
size_t must_reach(std::string_view golden) {
  const size_t first = golden.find_first_not_of(" \t\r\n");
  return first == std::string_view::npos ? golden.size() : std::min(golden.find("\n\n", first), golden.size());
}

void judge_pair(const assay_sink& sink, const assay_pair& pair, bool known) {
  if (assay::compare::emit_missing(sink, pair, ASSAY_HAS_TEXT, "generated_text")) return;
  const std::string_view golden = sdk::text(pair.reference->text);
  const std::string_view result = sdk::text(pair.candidate->text);
  if (golden.empty() || result.empty()) {
    const std::string side = golden.empty() ? "golden" : "result";
    emit(sink, {.kind = ASSAY_FINDING_BROKEN, .id = pair.id, .message = "generated_text of the " + side + " is empty"});
    return;
  }
  const size_t required = known ? text::first_blank_line(golden) : must_reach(golden);
  const size_t judged = known ? required : golden.size();
  const size_t equal = text::common_prefix(golden, result);
  if (equal < std::min(judged, result.size())) {
    const uint64_t index = text::count(golden.substr(0, equal));
    emit(sink,
         {.kind = ASSAY_FINDING_DIFFERS,
          .id = pair.id,
          .index = static_cast<int64_t>(index),
          .compared = index + 1,
          .differing = 1,
          .message = fmt::format("{}; {} code points match before it",
                                 assay::compare::describe_text_difference(*pair.reference, *pair.candidate), index)});
    return;
  }
  if (result.size() < required) {
    const uint64_t reached = text::count(result);
    emit(sink, {.kind = ASSAY_FINDING_BROKEN,
                .id = pair.id,
                .index = static_cast<int64_t>(reached),
                .compared = reached,
                .message = fmt::format("the result is truncated: it ends after {} of the {} code points of the {} that "
                                       "it must reach: {}",
                                       reached, text::count(golden.substr(0, required)),
                                       required < golden.size() ? "golden up to its first blank line" : "golden",
                                       text::around(golden, result.size(), 40, 30))});
    return;
  }
  emit_equal(sink, pair, golden, result, std::min(judged, result.size()), known);
}

int32_t judge(const assay_judgement* judgement, const assay_sink* sink, assay_error* error) {
  using assay::compare::ComparatorOptions;
  return assay::compare::judge_with_options(*judgement, error, [&](const ComparatorOptions& options) -> assay::Status {
    if (assay::Status status = assay::compare::refuse_tolerance(options, "generated_text"); !status.ok()) return status;
    for (size_t i = 0; i < judgement->pair_count; ++i) {
      judge_pair(*sink, judgement->pairs[i], judgement->known_completion != 0);
    }
    return {};
  });
}

const assay_comparator_table kTable = {sizeof(assay_comparator_table), 0, judge, nullptr, 0};
const assay_plugin kPlugin = assay::compare::comparator_plugin(
    "generated_text", "equality of generated text, in code points", ASSAY_CAP_TEXT, &kTable);

}  // namespace

ASSAY_PLUGIN_EXPORT const assay_plugin* assay_plugin_query(uint32_t abi_major, uint32_t, const assay_host*) {
  return abi_major == ASSAY_ABI_MAJOR ? &kPlugin : nullptr;
}
