// Metric known_completion: the result's text is how its prompt goes on in the source, exactly and all the way to the
// first blank line; what follows it is reported. The golden's text is not looked at unless there is no source: then its
// part before its first blank line is the known completion.
#include "core/compare/known_completion.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>

#include "assay/sdk.hpp"
#include "core/compare/comparator.h"
#include "core/compare/divergence.h"
#include "core/golden/text.h"

namespace {

using assay::compare::emit;
using assay::compare::KnownRequest;
using assay::compare::SourceText;
namespace text = assay::text;
namespace sdk = assay::sdk;

void broken(const assay_sink& sink, assay_str id, std::string message) {
  // The message names its request itself, as does the finding.
  const std::string prefix = fmt::format("request {}: ", text::printable(sdk::text(id)));
  if (id.size > 0 && message.starts_with(prefix)) message.erase(0, prefix.size());
  emit(sink, {.kind = ASSAY_FINDING_BROKEN, .id = id, .message = std::move(message)});
}

// How the text is known to go on: what must be reached, then what follows it in the source, as far as the result goes.
struct Known {
  std::string reference;
  size_t required = 0;  // bytes of it, up to the blank line
};

assay::Result<Known> known_of(const assay_pair& pair, const std::vector<SourceText>& sources) {
  KnownRequest request;
  request.id = sdk::text(pair.id);
  request.actual_text = sdk::text(pair.candidate->text);
  if (sources.empty()) {
    if ((pair.reference->has & ASSAY_HAS_TEXT) != 0) request.golden_text = sdk::text(pair.reference->text);
    if (assay::Status status = assay::compare::check_own_reference(request); !status.ok()) return status;
    const std::string_view golden = *request.golden_text;
    return Known{std::string(golden), text::first_blank_line(golden)};
  }
  for (const assay_record* record : {pair.reference, pair.candidate}) {
    if (!request.prompt && (record->has & ASSAY_HAS_PROMPT) != 0) request.prompt = sdk::text(record->prompt);
  }
  assay::Result<std::string> reference = assay::compare::known_reference(sources, request);
  if (!reference) return reference.status();
  const size_t required = text::first_blank_line(*reference);
  return Known{*std::move(reference), required};
}

void emit_further(const assay_sink& sink, const assay_pair& pair, const Known& known, std::string_view result) {
  if (result.size() <= known.required) return;
  const std::string_view reference = known.reference;
  const size_t equal = text::common_prefix(reference, result);
  const size_t further = text::count(result.substr(known.required));
  const bool differs = equal < std::min(reference.size(), result.size());
  emit(sink, {.kind = ASSAY_FINDING_NOTE,
              .id = pair.id,
              .index = differs ? static_cast<int64_t>(text::count(result.substr(0, equal))) : -1,
              .message = fmt::format(
                  "the result goes on for {} code points after the known completion, where nothing judges; {}", further,
                  differs ? fmt::format("they part from the source at code point {}: source {}, result {}",
                                        text::count(result.substr(0, equal)), text::around(reference, equal, 40, 30),
                                        text::around(result, equal, 40, 30))
                          : std::string("they do not contradict it"))});
}

void judge_pair(const assay_sink& sink, const assay_pair& pair, const std::vector<SourceText>& sources) {
  if ((pair.candidate->has & ASSAY_HAS_TEXT) == 0) {
    return emit(sink, {.kind = ASSAY_FINDING_MISSING, .id = pair.id, .message = "the result lacks generated_text"});
  }
  const std::string_view result = sdk::text(pair.candidate->text);
  if (result.empty()) return broken(sink, pair.id, "generated_text of the result is empty");
  const assay::Result<Known> known = known_of(pair, sources);
  if (!known) return broken(sink, pair.id, known.status().message());
  const std::string_view required = std::string_view(known->reference).substr(0, known->required);
  const size_t equal = text::common_prefix(required, result);
  const uint64_t matched = text::count(required.substr(0, equal));
  if (equal < std::min(required.size(), result.size())) {
    return emit(sink,
                {.kind = ASSAY_FINDING_DIFFERS,
                 .id = pair.id,
                 .index = static_cast<int64_t>(matched),
                 .compared = matched + 1,
                 .differing = 1,
                 .message = fmt::format("text parts from the known completion at code point {}: known {}, result {}; "
                                        "{} code points match before it",
                                        matched, text::around(required, equal, 40, 30),
                                        text::around(result, equal, 40, 30), matched)});
  }
  if (equal < required.size()) {
    return emit(sink,
                {.kind = ASSAY_FINDING_BROKEN,
                 .id = pair.id,
                 .index = static_cast<int64_t>(matched),
                 .compared = matched,
                 .message = fmt::format("the result is truncated: it ends after {} of the {} code points up to the "
                                        "first blank line: {}; raise the number of tokens to generate if it is "
                                        "too low to get there",
                                        matched, text::count(required), text::around(required, equal, 40, 30))});
  }
  emit(sink, {.kind = ASSAY_FINDING_EQUAL,
              .id = pair.id,
              .compared = matched,
              .message = fmt::format("{} code points are the known completion up to its first blank line", matched)});
  emit_further(sink, pair, *known, result);
}

int32_t judge(const assay_judgement* judgement, const assay_sink* sink, assay_error* error) {
  using assay::compare::ComparatorOptions;
  return assay::compare::judge_with_options(*judgement, error, [&](const ComparatorOptions& options) -> assay::Status {
    if (assay::Status status = assay::compare::refuse_tolerance(options, "known_completion"); !status.ok()) {
      return status;
    }
    const auto sources = assay::compare::load_sources(options.sources);
    if (!sources) {
      broken(*sink, {}, sources.status().message());
      return {};
    }
    for (size_t i = 0; i < judgement->pair_count; ++i) judge_pair(*sink, judgement->pairs[i], *sources);
    return {};
  });
}

const assay_comparator_table kTable = {sizeof(assay_comparator_table), 0, judge, nullptr, 0};
const assay_plugin kPlugin = assay::compare::comparator_plugin(
    "known_completion", "exact continuation of a source text up to its first blank line", ASSAY_CAP_TEXT, &kTable);

}  // namespace

ASSAY_PLUGIN_EXPORT const assay_plugin* assay_plugin_query(uint32_t abi_major, uint32_t, const assay_host*) {
  return abi_major == ASSAY_ABI_MAJOR ? &kPlugin : nullptr;
}
