// For tests: a case on the fake engine.
#pragma once

#include "core/compare/test_plugins.h"
#include "core/metamorphic/fake_laboratory.h"
#include "core/metamorphic/judge_relation.h"

namespace assay::metamorphic {

inline RelationInput input_for(Relation relation, FakeLaboratory& laboratory) {
  RelationInput input;
  input.relation = relation;
  input.prompts = {"The quick brown fox jumps over the lazy dog", "Sphinx of black quartz, judge my vow"};
  input.laboratory = &laboratory;
  input.engine = "static_legacy";
  input.lookup = compare::built_comparator;
  input.reference_path = "reference.json";
  input.changed_path = "actual.json";
  return input;
}

inline CaseVerdict judged(Relation relation, FakeLaboratory& laboratory) {
  return judge_relation(input_for(relation, laboratory)).verdict;
}

}  // namespace assay::metamorphic
