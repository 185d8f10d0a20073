// A relation from prompts to a verdict: makes the ways, has them run, looks whether the mechanism fired and judges each
// changed way against the reference.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "assay/golden.h"
#include "assay/provenance.h"
#include "assay/verdict.h"
#include "core/compare/judge.h"
#include "core/metamorphic/relation.h"
#include "core/metamorphic/way.h"

namespace assay::metamorphic {

struct RelationInput {
  Relation relation = Relation::kSoloVsBatch;
  Parameters parameters;
  std::vector<std::string> prompts;               // of the case
  Laboratory* laboratory = nullptr;               // never null; borrowed
  std::string engine;                             // of the case
  int32_t max_positions = 0;                      // of the model; 0: no limit
  bool greedy = false;                            // near-ties are told for greedy decoding alone
  bool routing = false;                           // the model routes: the engine is asked for it where it can
  bool top_n = false;                             // the case asks for top-n logprobs
  std::map<std::string, double> tolerances = {};  // ASSAY.tolerance, where no determinism level is declared
  compare::ComparatorLookup lookup;               // never empty
  const Provenance* provenance = nullptr;         // of all results; null: not known
  std::string reference_path;                     // what the two sets are called in the verdict
  std::string changed_path;
};

struct RelationOutcome {
  CaseVerdict verdict;  // `golden`: reference_path, where a pair was judged
  ResultSet reference;  // of the pair that the verdict shows: the worst, of equal ones the last; empty: none was judged
  ResultSet changed;
};

// Always an answer. Where engine and model declare the relation's level, equal bits alone pass; else the usual
// tolerances of the dtype judge. What must have happened and did not, an option or a capability that is missing, gives
// NOT_COMPARABLE; a request that fails gives INVALID naming way and request.
RelationOutcome judge_relation(const RelationInput& input);

}  // namespace assay::metamorphic
