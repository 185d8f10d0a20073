// From an order that names a relation to its verdict, inside a worker.
#pragma once

#include <string>

#include "assay/provenance.h"
#include "core/metamorphic/judge_relation.h"
#include "core/plugin/registry.h"
#include "core/run/loaded_model.h"
#include "core/run/worker_plan.h"

namespace assay::run {

struct RelationOrder {
  const CaseOrder* order = nullptr;        // all borrowed, none null but `provenance`
  const plugin::Plugin* engine = nullptr;  // of the case
  const LoadedModel* model = nullptr;
  plugin::PluginRegistry* registry = nullptr;  // of comparators
  const Provenance* provenance = nullptr;      // of the results; null: not known
  std::string reference_path;                  // files that the two sides will be written to
  std::string changed_path;
};

// Always an answer. A relation that does not exist is INVALID. The plan has refused engines that read recorded results.
metamorphic::RelationOutcome judge_order(const RelationOrder& given, metamorphic::Laboratory& laboratory);

}  // namespace assay::run
