// Final norm, output layer and what is said about each row of logits.
#pragma once

#include "backends/cpu/executor.h"
#include "backends/cpu/workspace.h"

namespace assay::cpu {

// Writes the outputs that the runs of w.tokens ask for; w.x holds the residual behind the last layer.
void write_outputs(const model::ModelConfig& config, const Weights& weights, Executor& executor, Workspace& w);

}  // namespace assay::cpu
