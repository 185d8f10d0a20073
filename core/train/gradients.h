// checkpoint-consistency: the gradients of one step, as the optimizer states of several checkpoints hold them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/train/run_case.h"

namespace assay::train {

// Largest ||a - b|| / ||b|| (Frobenius) that passes: 4 * 1.03^33 * 2^-7, Megatron-LM's bound for layer 0 of 32 in bf16.
double gradient_bound();

// Whether a tensor of this key has a row for each token, padded in some runs; and whether tensor parallelism cuts its
// columns.
bool is_vocabulary(std::string_view key);
bool is_row_parallel(std::string_view key);

// How a flat optimizer state of a tensor-parallel run is laid out beside a whole one.
struct Unsharding {
  int64_t outer = 1;  // layers
  int64_t tp = 1;
  int64_t rows = 0;
  int64_t columns = 0;
};

// `state` (outer, tp, rows * (columns / tp)) as (outer, rows, columns).
std::vector<float> unshard_rows(const std::vector<float>& state, const Unsharding& shape);

// Compares the tensors "optimizer.*.exp_avg.*" of every later folder with those of the first one, `folders` being
// iteration folders of torch_dist checkpoints, at least two.
//  IDENTICAL  all bits equal       EQUIVALENT within the bound        DIVERGED beyond it
//  INVALID    a tensor is there on one side alone, shapes that cannot be brought together, no tensor, nothing but zeros
CaseVerdict judge_checkpoints(const std::vector<std::string>& folders);

// The same, and what Megatron-LM's script says of the same tensors.
struct GradientVerdicts {
  CaseVerdict ours;
  CompatVerdict theirs;
};
GradientVerdicts judge_checkpoints_twice(const std::vector<std::string>& folders);

// The same of the runs of a case, each of which saved iteration 1.
void judge_gradients(const CasePlan& plan, CaseResult* result);

}  // namespace assay::train
