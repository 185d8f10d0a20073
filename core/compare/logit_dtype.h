// The dtype that the logits behind a golden had, told from its logprobs alone. Pure functions.
#pragma once

#include <optional>

#include "assay/golden.h"
#include "core/compare/rerun.h"

namespace assay::compare {

// Bits of mantissa of the golden's logits; nullopt: the golden does not tell.
//
// logprob = logit - Z, Z one number a position. Logits of a dtype lie on its grid:
//  - Of two entries of one top-n list Z cancels, so their difference is a multiple of the smaller ULP, up to the
//    rounding of fp32 logprobs. The magnitudes of the logits, hence the ULP, come from the rerun's Z (`rerun` not
//    null); without a rerun the largest power of two that divides the differences is taken for the ULP of a logit
//    near 1.
//  - Without lists, golden logprob + Z of the rerun is the golden's logit up to the error of Z, which averages over the
//    vocabulary and is small against a ULP of bf16. Many such values on the grid are no chance (V-test, p < 1e-6);
//    values off the grid mean fp32 only where golden and rerun are otherwise close.
std::optional<int> infer_mantissa(const ResultSet& golden, const RerunResult* rerun);

// Whether the golden's top-n lists show that its logits are not of this many bits: most differences within a list are
// off the grid that logits of 2^-4 and more lie on. False where there are too few lists to tell.
bool off_grid(const ResultSet& golden, int mantissa);

}  // namespace assay::compare
