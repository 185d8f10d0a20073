// The feed-forward part of a layer, dense or a mixture of experts, added to the residual.
#pragma once

#include "backends/cpu/executor.h"
#include "backends/cpu/workspace.h"

namespace assay::cpu {

// Reads w.normed, adds to w.x. A mixture leaves its choices in w.experts, w.factors and w.margins.
void feed_forward(const model::ModelConfig& config, const Layer& layer, Executor& executor, Workspace& w);

}  // namespace assay::cpu
