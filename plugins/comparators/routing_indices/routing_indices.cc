// Metric routing_indices: the experts chosen at every (token, layer) are the same set; their order means nothing.
// Tokens the golden leaves out are not judged. Where the generated tokens part, positions up to there are compared.
// WITHIN when all differing sets are near-ties (compare_sets.h) under margin_tolerance, BEYOND when the others follow
// from one: the texts still agree and the cause is rounding, but numbers are no longer what the golden says.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "assay/sdk.hpp"
#include "core/compare/comparator.h"
#include "core/compare/divergence.h"
#include "core/compare/tolerance.h"
#include "plugins/comparators/routing_indices/compare_sets.h"

namespace {

using assay::compare::emit;
using assay::compare::Tolerance;
using assay::routing::Comparison;
namespace sdk = assay::sdk;

constexpr size_t kMaxLayersNamed = 16;

std::string layers_line(const std::vector<uint64_t>& by_layer) {
  std::vector<std::string> named;
  for (size_t layer = 0; layer < by_layer.size(); ++layer) {
    if (by_layer[layer] == 0) continue;
    if (named.size() == kMaxLayersNamed) {
      named.emplace_back("...");
      break;
    }
    named.push_back(fmt::format("{}: {}", layer, by_layer[layer]));
  }
  return fmt::format("differing by layer {}", fmt::join(named, ", "));
}

std::string describe(const Comparison& seen, const Tolerance& tolerance) {
  const double share = 100 * static_cast<double>(seen.compared - seen.differing) / static_cast<double>(seen.compared);
  if (seen.differing == 0) return fmt::format("{} sets of experts equal", seen.compared);
  const auto& first = *seen.first;
  std::string line = fmt::format(
      "{} of {} sets of experts differ ({:.2f} % agree), first at token {} layer {}: golden {{{}}}, result {{{}}}, {}; "
      "{}",
      seen.differing, seen.compared, share, first.token, first.layer, fmt::join(first.golden, ","),
      fmt::join(first.result, ","),
      first.margin ? fmt::format("margin {:.3g}", *first.margin) : std::string("margin not recorded"),
      layers_line(seen.by_layer));
  line += fmt::format("; {} near-ties within {:.3g} ({})", seen.near_ties, tolerance.value, tolerance.source);
  if (seen.following > 0) line += fmt::format(", {} follow from them", seen.following);
  if (seen.unexplained > 0) line += fmt::format(", {} unexplained", seen.unexplained);
  if (seen.tolerable) line += fmt::format(", smallest passing tolerance {:.6g}", seen.largest_margin);
  return line;
}

uint32_t kind_of(const Comparison& seen) {
  if (seen.differing == 0) return ASSAY_FINDING_EQUAL;
  if (seen.unexplained > 0) return ASSAY_FINDING_DIFFERS;
  return seen.following > 0 ? ASSAY_FINDING_BEYOND : ASSAY_FINDING_WITHIN;
}

// `compared`: sets before the split that no other finding tells of.
void emit_split(const assay_sink& sink, const assay_pair& pair, const assay::routing::Split& split, uint64_t compared) {
  const std::string why =
      split.position ? std::string("only sets before it are compared, later ones belong to other texts")
                     : std::string("the prompt's length is not recorded, so that no set is known to come before it");
  emit(sink,
       {.kind = ASSAY_FINDING_DIFFERS,
        .id = pair.id,
        .index = split.position.value_or(-1),
        .compared = compared,
        .differing = 1,
        .message = fmt::format("tokens part at generated token {}: {}; {}", split.generated, why,
                               assay::compare::describe_tokens(*pair.reference, *pair.candidate, split.generated))});
}

void judge_pair(const assay_sink& sink, const assay_pair& pair, const Tolerance& tolerance) {
  if (assay::compare::emit_missing(sink, pair, ASSAY_HAS_ROUTING, "routing_indices")) return;
  const auto split = assay::routing::split_of(*pair.reference, *pair.candidate);
  if (split && !split->position) return emit_split(sink, pair, *split, 0);
  Comparison seen;
  assay::routing::Fault fault;
  const std::optional<int64_t> end = split ? split->position : std::nullopt;
  if (!assay::routing::compare_sets(pair, end, tolerance.value, &seen, &fault)) {
    return emit(sink, {.kind = static_cast<uint32_t>(fault.missing ? ASSAY_FINDING_MISSING : ASSAY_FINDING_BROKEN),
                       .id = pair.id,
                       .index = fault.token,
                       .message = std::move(fault.message)});
  }
  // Where tokens part: sets that differ before it, then the token; equal sets are told with the token.
  if (!split || seen.differing > 0) {
    emit(sink, {.kind = kind_of(seen),
                .id = pair.id,
                .index = seen.first ? seen.first->token : -1,
                .compared = seen.compared,
                .differing = seen.differing,
                .max_abs_difference = seen.largest_margin,
                .smallest_passing_tolerance = seen.tolerable ? seen.largest_margin : 0,
                .message = describe(seen, tolerance)});
  }
  if (split) emit_split(sink, pair, *split, seen.differing > 0 ? 0 : seen.compared);
}

int32_t judge(const assay_judgement* judgement, const assay_sink* sink, assay_error* error) {
  using assay::compare::ComparatorOptions;
  return assay::compare::judge_with_options(*judgement, error, [&](const ComparatorOptions& options) -> assay::Status {
    const Tolerance tolerance = assay::compare::margin_tolerance(options);
    for (size_t i = 0; i < judgement->pair_count; ++i) judge_pair(*sink, judgement->pairs[i], tolerance);
    return {};
  });
}

const assay_comparator_table kTable = {sizeof(assay_comparator_table), 0, judge, nullptr, 0};
const assay_plugin kPlugin = assay::compare::comparator_plugin(
    "routing_indices", "equality of the sets of experts, by token and layer", ASSAY_CAP_ROUTING, &kTable);

}  // namespace

ASSAY_PLUGIN_EXPORT const assay_plugin* assay_plugin_query(uint32_t abi_major, uint32_t, const assay_host*) {
  return abi_major == ASSAY_ABI_MAJOR ? &kPlugin : nullptr;
}
