// One metric: calls its comparator and turns findings into a verdict.
#pragma once

#include <optional>
#include <string>

#include "assay/provenance.h"
#include "assay/verdict.h"
#include "core/compare/judge.h"
#include "core/compare/views.h"

namespace assay::compare {

// What all metrics of a case share; borrowed.
struct MetricInput {
  const JudgeOptions& options;
  const std::vector<assay_pair>& pairs;
  const std::vector<assay_quantity>& reference_quantities;
  const std::vector<assay_quantity>& candidate_quantities;
  const NoiseModel* noise = nullptr;  // of the golden; null: none recorded
  std::string dtype = {};             // of the coarsest logits on either side; empty: not known
  std::optional<double> logit = {};   // largest magnitude of a logit
};

// Never passes without evidence: no comparator, a capability the engine lacks, a request without a judging finding and
// nothing compared are NOT_COMPARABLE; a comparator that fails or reports nonsense is INVALID.
MetricVerdict judge_metric(const std::string& metric, const MetricInput& input);

}  // namespace assay::compare
