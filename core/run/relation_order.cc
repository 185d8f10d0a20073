#include "core/run/relation_order.h"

#include <fmt/format.h>

#include <optional>

namespace assay::run {

metamorphic::RelationOutcome judge_order(const RelationOrder& given, metamorphic::Laboratory& laboratory) {
  const CaseOrder& order = *given.order;
  const std::optional<metamorphic::Relation> relation = metamorphic::parse_relation(order.relation);
  if (!relation) {
    metamorphic::RelationOutcome refused;
    refused.verdict = {
        Verdict::kInvalid, fmt::format("relation '{}': there is none of this name", order.relation), "", {}};
    return refused;
  }
  return metamorphic::judge_relation(
      {.relation = *relation,
       .parameters = order.metamorphic,
       .prompts = order.prompts,
       .laboratory = &laboratory,
       .engine = given.engine->name,
       .max_positions = given.model->max_positions(),
       .greedy = order.top_k == 1,
       .routing = given.model->routes(),
       .top_n = order.top_n > 0,
       .tolerances = order.tolerances,
       .lookup = [&](std::string_view metric) { return given.registry->comparator_table(metric); },
       .provenance = given.provenance,
       .reference_path = given.reference_path,
       .changed_path = given.changed_path});
}

}  // namespace assay::run
