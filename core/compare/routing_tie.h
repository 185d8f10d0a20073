// Splits beyond a near-tie that a mixture of experts causes: where two experts tie at the top-k boundary, rounding
// chooses between them, and the logits of this token and of all later ones change by any amount. Pure functions.
#pragma once

#include <vector>

#include "assay/golden.h"
#include "core/compare/near_tie.h"
#include "core/compare/rerun.h"

namespace assay::compare {

// The golden's token must still be among this many best of the engine's: most arbitrary tokens are not.
inline constexpr int64_t kMostRoutingTieRank = 512;

// Tells for each generated position whether a split there may come from routing. It may when
//  1. the rerun's router margin (score of the last expert chosen - that of the best one left out), at this position's
//     token or an earlier one of the request, is at most the rule's number of ULPs of scores below 1;
//  2. elsewhere the arithmetic agrees: the median |golden - rerun| of logprobs is within kUlpsOtherDtype ULPs over the
//     prompt, and within twice that over the generated tokens, which other experts reach sooner. Most defects move
//     more;
//  3. the golden's token keeps a rank below kMostRoutingTieRank;
//  4. where the golden records its routing, a set of experts differs up to there.
// All false without margins, golden logprobs or logits.
std::vector<bool> routing_ties(const RerunRequest& again, const RequestRecord& golden, const TieRule& rule);

}  // namespace assay::compare
