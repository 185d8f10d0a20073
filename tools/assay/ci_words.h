// The words that Megatron-LM's run_ci_test.sh takes: KEY=VALUE.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "assay/status.h"
#include "tools/assay/command.h"

namespace assay::cli {

// Split at the first '='; one layer of quotes is taken off, then $NAME and ${NAME} are replaced from earlier words and
// `environment` (unset: by nothing) and runs of blanks become one, as a shell's echo does. The last one of a key
// counts. Fails with kInvalid: no '=', a key that is no name of a variable, a value that a shell would execute.
Result<std::map<std::string, std::string>> parse_ci_words(const Words& words,
                                                          const std::map<std::string, std::string>& environment);

// The names that run_ci_test.sh insists on and that are neither in `words` nor in `environment`, or empty.
std::vector<std::string> missing_ci_words(const std::map<std::string, std::string>& words,
                                          const std::map<std::string, std::string>& environment);

}  // namespace assay::cli
