// Drawing one token from logits (megatron.md 8.2), shared by the backends.
#pragma once

#include <cstdint>
#include <span>

#include "assay/plugin_abi.h"

namespace assay::arithmetic {

// A number in [0, 1) with 53 bits that depends on the three keys alone: counter-based (SplitMix64 finaliser over a
// mixed key), so that draws never depend on order, slot or batch.
double uniform_draw(uint64_t seed, uint64_t prompt_index, uint64_t position);

// logits: (vocab) raw. position: index in the sequence of the token being drawn. sampling must have passed
// check_sampling (border.h).
//  top_k == 1: argmax of the raw logits, ties to the lower id; the temperature is ignored.
//  else logits / temperature; top_k > 1 keeps everything not below the k-th largest; top_p > 0 keeps, in descending
//  order (ties: lower id first), what is preceded by a cumulative probability <= top_p; then one draw by the inverse of
//  the cumulative distribution over the kept ids. Everything in double. A NaN logit makes the result the first NaN's
//  id.
// Allocates (vocab) entries unless top_k == 1. Thread-safe.
int32_t sample_token(std::span<const float> logits, const assay_sampling& sampling, uint64_t position);

}  // namespace assay::arithmetic
