// Template variables in the words of commands, of engines and of launchers. Pure functions.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "assay/status.h"

namespace assay::engines {

struct TemplateVariable {
  std::vector<std::string> words = {};
  bool several = false;     // stands for `words`, however many: a word that is nothing else becomes those
  bool joined = false;      // of several: inside a longer word they are joined with blanks; else that is refused
  std::string absent = {};  // why it has no value here, where it has none
};

using TemplateVariables = std::map<std::string, TemplateVariable>;

// `words` with {name} replaced and {{ and }} turned into braces; values are put in as they are, neither quoted nor
// replaced again. kInvalid, beginning with `what`, which names the option: an unknown variable (the nearest and the
// known ones are named) or an absent one, a brace that closes or opens nothing, a variable of several words inside a
// longer one.
Result<std::vector<std::string>> fill_in(const std::vector<std::string>& words, const TemplateVariables& variables,
                                         const std::string& what);

// Whether one of the words names the variable.
bool names_variable(const std::vector<std::string>& words, const std::string& name);

}  // namespace assay::engines
