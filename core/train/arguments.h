// The words of a training program's command line.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "assay/case.h"
#include "core/discover/substitute.h"
#include "core/train/case_plan.h"

namespace assay::train {

// How Megatron-LM's script changes MODEL_ARGS before it runs the case.
struct ArgumentChanges {
  bool nemo = false;         // TRAINING_SCRIPT_PATH names "nemo": arguments are key=value
  bool lightweight = false;  // a few steps only
  bool rl = false;
  TestType type = TestType::kRegular;
};

// Applies them to `args` (MODEL_ARGS) and returns TRAIN_ITERS: the last step that is compared. `config` names the file.
// Fails with kInvalid where a number of steps is none.
Result<int64_t> change_arguments(const ArgumentChanges& changes, const std::string& config, ModelArgs* args);

// The words of run `run` of the case, changes included where it takes MODEL_ARGS. Fails with kInvalid.
Result<std::vector<std::string>> argument_words(const TestCase& test, const discover::Variables& variables, int run,
                                                const ArgumentChanges& changes);

}  // namespace assay::train
