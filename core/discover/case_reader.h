// model_config.yaml -> TestCase: the schema of a case file. No substitution, no meaning of arguments.
#pragma once

#include <string>

#include "assay/case.h"

namespace assay::discover {

// Fills everything of `test_case` that the text of its model_config.yaml says. `test_case.config` names the file in
// messages. A failure is stored in test_case.error (kInvalid, "file:line:column: ..."); what could be read stays.
void read_config(std::string text, TestCase& test_case, bool needs_model_args = true);

}  // namespace assay::discover
