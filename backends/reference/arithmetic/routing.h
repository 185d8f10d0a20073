// Which experts a token goes to, and with what weights. Shared by the backends: one scalar routine, one order.
#pragma once

#include <cstdint>
#include <span>

#include "backends/model/config/model_config.h"

namespace assay::arithmetic {

// logits: (experts), already rounded if the arithmetic says so. bias: (experts) fp32 or empty; added to the scores for
// the choice only. Writes `moe.topk` experts in ascending id with their weights (scaling factor included). Ties go to
// the lower expert. Sums run over the chosen in ascending id. Group-limited: a group's score is the sum of its best
// topk / group_topk choices, the best group_topk groups stay.
// Returns the margin: choice score (bias included) of the last expert chosen minus that of the best one left out of the
// groups that stay; infinity where none is left, NaN where the last one chosen has no number for a score.
// `scratch` has room for 4 * experts floats. Thread-safe.
float choose_experts(const model::MoeConfig& moe, const float* logits, std::span<const float> bias, float* scratch,
                     uint16_t* experts, float* weights);

}  // namespace assay::arithmetic
