// MODEL_ARGS as Megatron-LM's harness reads it: variables replaced in the text of the file, then the entries as yq v4
// prints them (megatron.md 3.2, 3.3).
#pragma once

#include "assay/case.h"
#include "core/discover/expand.h"
#include "core/discover/substitute.h"

namespace assay::discover {

// Entries of the MODEL_ARGS of run `run_number` (MODEL_ARGS_n where the case has it, else MODEL_ARGS): `text` is what
// yq prints behind "key: ", of several lines for a block scalar or a list of several lines. A repeated key is there as
// often as the harness sees it. Reads test_case.config_text alone, so that no ENV_VARS of the case count.
// kInvalid: the text is broken once variables are replaced; a value that is a mapping; a variable that is not set.
Result<ModelArgs> harness_args(const TestCase& test_case, const Variables& variables, int run_number = 1);

// The words of the training script's command line. `nemo`: its branch for NeMo scripts, key=value.
Result<std::vector<std::string>> harness_words(const TestCase& test_case, const Variables& variables,
                                               int run_number = 1, bool nemo = false);

// The same for people to look at: a variable that is not set stays, as ${NAME}, and its name is added to `unset`.
Result<std::vector<ArgumentWord>> words_to_show(const TestCase& test_case, Variables variables, int run_number,
                                                bool nemo, std::vector<std::string>* unset);

// True when the keys of MODEL_ARGS are those of NeMo scripts: none begins with a dash.
bool has_nemo_keys(const TestCase& test_case);

}  // namespace assay::discover
