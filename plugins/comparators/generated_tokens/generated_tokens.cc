// Metric generated_tokens: the ids are equal one by one and in number.
#include <fmt/format.h>

#include <optional>

#include "assay/sdk.hpp"
#include "core/compare/comparator.h"
#include "core/compare/divergence.h"

namespace {

using assay::compare::emit;
namespace sdk = assay::sdk;

void judge_pair(const assay_sink& sink, const assay_pair& pair) {
  if (assay::compare::emit_missing(sink, pair, ASSAY_HAS_TOKENS, "generated_tokens")) return;
  const assay_ids golden = pair.reference->tokens;
  const assay_ids result = pair.candidate->tokens;
  if (golden.size == 0 || result.size == 0) {
    const std::string side = golden.size == 0 ? "golden" : "result";
    emit(sink,
         {.kind = ASSAY_FINDING_BROKEN, .id = pair.id, .message = "generated_tokens of the " + side + " is empty"});
    return;
  }
  const std::optional<size_t> index = assay::compare::first_divergent_token(golden, result);
  if (!index) {
    emit(sink, {.kind = ASSAY_FINDING_EQUAL,
                .id = pair.id,
                .compared = golden.size,
                .message = fmt::format("{} tokens equal", golden.size)});
    return;
  }
  // A result that merely stops early is truncated; everything else is another token where the golden has one or none.
  const bool truncated = *index == result.size;
  const std::string evidence = assay::compare::describe_divergence(*pair.reference, *pair.candidate, *index);
  emit(sink, {.kind = static_cast<uint32_t>(truncated ? ASSAY_FINDING_BROKEN : ASSAY_FINDING_DIFFERS),
              .id = pair.id,
              .index = static_cast<int64_t>(*index),
              .compared = *index + (truncated ? 0 : 1),
              .differing = 1,
              .message = truncated ? fmt::format("the result is truncated: it stops after {} of {} tokens; {}",
                                                 result.size, golden.size, evidence)
                                   : evidence});
}

int32_t judge(const assay_judgement* judgement, const assay_sink* sink, assay_error* error) {
  using assay::compare::ComparatorOptions;
  return assay::compare::judge_with_options(*judgement, error, [&](const ComparatorOptions& options) -> assay::Status {
    if (assay::Status status = assay::compare::refuse_tolerance(options, "generated_tokens"); !status.ok())
      return status;
    for (size_t i = 0; i < judgement->pair_count; ++i) judge_pair(*sink, judgement->pairs[i]);
    return {};
  });
}

const assay_comparator_table kTable = {sizeof(assay_comparator_table), 0, judge, nullptr, 0};
const assay_plugin kPlugin = assay::compare::comparator_plugin(
    "generated_tokens", "equality of generated token ids and of their number", ASSAY_CAP_TOKENS, &kTable);

}  // namespace

ASSAY_PLUGIN_EXPORT const assay_plugin* assay_plugin_query(uint32_t abi_major, uint32_t, const assay_host*) {
  return abi_major == ASSAY_ABI_MAJOR ? &kPlugin : nullptr;
}
