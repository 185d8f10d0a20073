// What --deterministic-mode demands of a case.
#pragma once

#include <map>
#include <string>

#include "assay/status.h"

namespace assay::run {

// Megatron-LM refuses such a run unless NCCL_ALGO, NVTE_ALLOW_NONDETERMINISTIC_ALGO and CUBLAS_WORKSPACE_CONFIG are
// unset or ask for deterministic kernels; ours holds L1 to L3 (docs/determinism.md) unless a backend option gives them
// up. `variables`: environment of the worker. `backend_options`: JSON object or empty.
// kInvalid naming the variable or option, its value and those that are admitted.
Status check_deterministic_mode(const std::map<std::string, std::string>& variables,
                                const std::string& backend_options);

}  // namespace assay::run
