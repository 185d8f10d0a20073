// Makes the evidence of one request (assay/evidence.h). Pure functions.
#pragma once

#include <optional>

#include "assay/evidence.h"
#include "assay/golden.h"
#include "core/compare/rerun.h"

namespace assay::compare {

struct EvidenceInput {
  const RequestRecord* golden = nullptr;   // borrowed, never null
  const RequestRecord* actual = nullptr;   // of the judged run; borrowed, never null
  const RerunRequest* again = nullptr;     // null: no rerun
  std::optional<Reanchoring> reanchoring;  // of `again`, or why there is none
  double tolerance = 0;                    // of logprobs, nats
};

// Bounded by the constants of assay/evidence.h. Texts of tokens come from top-n lists whose ids are known.
RequestEvidence evidence_of(const EvidenceInput& input);

// Sets of experts over the first `tokens` positions of the sequence; nullopt when a side has no routing or the shapes
// differ. Expert order within a set means nothing.
std::optional<RoutingEvidence> routing_evidence(const RequestRecord& golden, const RequestRecord& result,
                                                size_t tokens);

}  // namespace assay::compare
