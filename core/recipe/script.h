// What the script of a workload says about its case: the words that Megatron-LM's run_ci_test.sh takes.
#pragma once

#include <string>
#include <string_view>

#include "assay/case.h"

namespace assay::recipe {

// Values as written, of the last line that gives them, without quotes; empty: the script names none.
struct ScriptWords {
  std::string training_script;  // TRAINING_SCRIPT_PATH
  std::string params;           // TRAINING_PARAMS_PATH: the case's model_config.yaml
  std::string golden;           // GOLDEN_VALUES_PATH
};

// Lines that are comments are passed over.
ScriptWords script_words(std::string_view script);

// The value of one NAME=VALUE word of the script, as above; empty: there is none.
std::string script_word(std::string_view script, std::string_view name);

// Which engine of Megatron-LM a workload runs:
//   static-legacy, static-dyn   gpt_static_inference.py, with and without --use-legacy-static-engine
//   dynamic, dyn+coord          gpt_dynamic_inference.py, gpt_dynamic_inference_with_coordinator.py
//   api-sync, api-async         offline_inference.py by --async-mode; "+coord" with --use-coordinator
//   server                      a server of completions and its client
//   pretraining, rl, nemo       training
//   unit-tests, performance     no case of run_ci_test.sh
//   static, api                 inference whose case cannot be read, so that its flags are not known
//   script                      anything else
// `test` may be nullptr: the case cannot be read.
std::string flavour_of(const ScriptWords& words, std::string_view script, const TestCase* test);

// The engine here that does the work of a flavour; empty: none does.
std::string engine_of_flavour(std::string_view flavour);

}  // namespace assay::recipe
