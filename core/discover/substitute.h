// ${NAME} and $NAME in scalars of MODEL_ARGS* and ENV_VARS, when a run is planned.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>

#include "assay/case.h"

namespace assay::discover {

// Where values come from: `set` (--set NAME=VALUE) first, then `environment`, which tools/ fill; nothing else is read.
struct Variables {
  using Map = std::map<std::string, std::string, std::less<>>;
  Map set;
  Map environment;

  const std::string* find(std::string_view name) const;  // nullptr: unset
};

// How a scalar is used afterwards: as a command-line word it passes the shell (expand.h), where a backslash keeps $NAME
// from being expanded and where a value must not hold quotes, backslashes, backticks or dollars.
enum class SubstitutionUse { kArgument, kPlain };

// `text` with every $NAME and ${NAME} replaced, once: values are not substituted again. Other uses of $ stay.
// Fails with kInvalid: an unset variable (kPlain; kArgument unless a backslash precedes it) with the remedy, a value
// that the shell would change.
Result<std::string> substitute(std::string_view text, const Variables& variables, SubstitutionUse use);

// Substitutes in place all ENV_VARS of the case. The failure names variable, key and "file:line:column".
Status substitute_env_vars(TestCase& test_case, const Variables& variables);

// The same for all of MODEL_ARGS and MODEL_ARGS_n.
Status substitute_model_args(TestCase& test_case, const Variables& variables);

}  // namespace assay::discover
