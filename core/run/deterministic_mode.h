// What --deterministic-mode demands of a case.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "assay/status.h"

namespace assay::run {

// Megatron-LM refuses such a run unless NCCL_ALGO, NVTE_ALLOW_NONDETERMINISTIC_ALGO and CUBLAS_WORKSPACE_CONFIG are
// unset or ask for deterministic kernels. `variables`: environment of the worker.
// kInvalid naming the variable, its value and those that are admitted.
Status check_deterministic_variables(const std::map<std::string, std::string>& variables);

// What somebody who computes says of itself.
struct LevelClaim {
  std::string who;      // "engine buffered", "backend cuda with {"prefill":"fast"}"
  uint64_t levels = 0;  // ASSAY_CAP_L1 to L3; other bits do not count
  std::string remedy;   // what else could be chosen
};

// All of L1 to L3 (docs/determinism.md) have to be claimed by all. kInvalid naming the first that does not, and the
// levels that are missing.
Status check_levels(const std::vector<LevelClaim>& claims);

}  // namespace assay::run
