// From a rerun on the golden's tokens to near-ties and true splits. Pure functions.
#pragma once

#include <optional>

#include "assay/evidence.h"
#include "assay/golden.h"
#include "core/compare/near_tie.h"
#include "core/compare/rerun.h"

namespace assay::compare {

struct ReanchorInput {
  const RerunRequest* again = nullptr;    // borrowed, never null
  const RequestRecord* golden = nullptr;  // borrowed, never null
  const RequestRecord* actual = nullptr;  // of the judged run; borrowed, never null
  const TieRule* rule = nullptr;          // borrowed, never null
  std::string method;                     // of the rerun
  double tolerance = 0;                   // of logprobs, nats
};

// What became of one request. `explains()` is true only when every position of the golden was looked at, the judged
// run's first other token ties with the golden's in the rerun, and so does every token that the rerun prefers.
Reanchoring reanchor(const ReanchorInput& input);

// First generated token at which the judged run leaves `golden_tokens`; -1: nowhere, or its tokens are not known.
int64_t first_divergent(const std::vector<int32_t>& golden_tokens, const RequestRecord& actual);

// |golden - result| of logprobs over the first `count` values of both; nullopt when a side lacks them. Not finite ones
// count as over tolerance and are left out of max, mean and p99.
std::optional<LogprobStatistics> logprob_statistics(const RequestRecord& golden, const RequestRecord& result,
                                                    size_t count, double tolerance);

// Joined logprobs of a record (P - 1 + G); empty: none.
std::vector<double> joined_logprobs(const RequestRecord& record);
size_t logprob_count(const RequestRecord& record);  // their number

}  // namespace assay::compare
