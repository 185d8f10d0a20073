// Template variables in the words of a command. Pure functions.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "assay/status.h"

namespace assay::engines {

struct TemplateVariable {
  std::vector<std::string> words;
  bool several = false;  // stands for `words`, however many: has to stand alone
  std::string absent;    // why it has no value here, where it has none
};

using TemplateVariables = std::map<std::string, TemplateVariable>;

// `words` with {name} replaced and {{ and }} turned into braces. A word that is {name} of several words becomes those.
// kInvalid: an unknown or absent variable (the known ones are listed), a brace that closes or opens nothing, a variable
// of several words inside a longer one.
Result<std::vector<std::string>> fill_in(const std::vector<std::string>& words, const TemplateVariables& variables);

// Whether one of the words names the variable.
bool names_variable(const std::vector<std::string>& words, const std::string& name);

}  // namespace assay::engines
