// One changed way against the reference. Part of judge_relation.
#pragma once

#include <optional>

#include "core/metamorphic/experiment.h"
#include "core/metamorphic/judge_relation.h"

namespace assay::metamorphic {

struct PairVerdict {
  std::string name;                         // of the changed way
  CaseVerdict verdict;                      // metrics and evidence of the comparison
  std::string mechanism;                    // what was seen
  bool exact = false;                       // equal bits alone pass
  uint64_t values = 0;                      // compared
  size_t requests = 0;                      // judged
  std::optional<ResultSet> reference = {};  // what was compared; none: nothing was
  std::optional<ResultSet> changed = {};
};

// Verdict of an engine that could not be opened or broke while requests ran, or cannot do what a way asks for.
Verdict verdict_of_way(StatusCode code);

// "request 3: message (2 requests failed)", as verdict; nullopt: none failed.
std::optional<CaseVerdict> verdict_of_failures(const std::vector<FailedAsk>& failed);

// The requests of both results, judged; the mechanism is somebody else's. `rerun`: of the changed way; null: none.
PairVerdict judge_pair(const RelationInput& input, const Experiment& experiment, const Changed& changed,
                       const WayResult& reference, const WayResult& result, compare::Rerun* rerun);

}  // namespace assay::metamorphic
