// ${NAME} and $NAME in the config of a case, when a run is planned.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "assay/case.h"

namespace assay::discover {

// Where values come from: `set` (--set NAME=VALUE) first, then `environment`, which tools/ fill; nothing else is read.
struct Variables {
  using Map = std::map<std::string, std::string, std::less<>>;
  Map set;
  Map environment;

  const std::string* find(std::string_view name) const;  // nullptr: unset
};

// `text` with every $NAME and ${NAME} replaced, once: values are not substituted again. Other uses of $ stay.
// Fails with kInvalid, naming the remedy: a variable that is not set.
Result<std::string> substitute(std::string_view text, const Variables& variables);

// The same, a variable that is not set staying as it is written: what envsubst makes of a whole file.
std::string substitute_known(std::string_view text, const Variables& variables);

// The names that `text` refers to, each once; a backslash before a reference takes it out.
std::vector<std::string> referenced_variables(std::string_view text);

// Substitutes in place all ENV_VARS of the case. The failure names variable, key and "file:line:column".
Status substitute_env_vars(TestCase& test_case, const Variables& variables);

}  // namespace assay::discover
