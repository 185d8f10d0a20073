// Words of a command with {variables} in them. Pure.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "assay/status.h"

namespace assay::launchers {

// Values of variables. A word that is nothing but a variable becomes all of its words (none, one or several); inside a
// longer word they are joined with blanks.
using TemplateValues = std::map<std::string, std::vector<std::string>>;

// {{ and }} stand for one brace. Values are put in as they are: nothing is quoted or replaced again.
std::vector<std::string> expand_template(const std::vector<std::string>& words, const TemplateValues& values);

// kInvalid: a variable that is not among `known`, a brace that is not closed. `what` names the option.
Status check_template(const std::vector<std::string>& words, const std::vector<std::string>& known,
                      const std::string& what);

}  // namespace assay::launchers
