// The words that Megatron-LM's run_ci_test.sh takes: KEY=VALUE.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "assay/status.h"
#include "tools/assay/command.h"

namespace assay::cli {

// Each word is split at the first '='; one layer of quotes is taken off, and what is left is read as the script's
// `eval echo VALUE` reads it, a second time after the shell that started the script: quotes and backslashes are taken
// off, $NAME and ${NAME} are replaced from earlier words and `environment` (unset: by nothing), runs of blanks become
// one. Fails with kInvalid, naming the key: no '=', a key that is no name of a variable or was there before, a value
// that a shell would execute, expand in another way or not take (discover::split_shell_words), or echo for an option.
Result<std::map<std::string, std::string>> parse_ci_words(const Words& words,
                                                          const std::map<std::string, std::string>& environment);

// The names that run_ci_test.sh insists on and that are neither in `words` nor in `environment`, or empty.
std::vector<std::string> missing_ci_words(const std::map<std::string, std::string>& words,
                                          const std::map<std::string, std::string>& environment);

// The words that count where they stand in `environment` alone, and are neither empty nor among `words`: those that
// run_ci_test.sh insists on, which reads both alike, RUN_CI_BARRIER_DIR and N_REPEAT. None with a secret name.
std::map<std::string, std::string> inherited_ci_words(const std::map<std::string, std::string>& words,
                                                      const std::map<std::string, std::string>& environment);

}  // namespace assay::cli
