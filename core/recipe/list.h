// What `assay recipe list` prints.
#pragma once

#include <string>

#include "core/recipe/catalogue.h"

namespace assay::recipe {

// One JSON array, an object a workload: every key of its spec, with name and script filled in (script: null where it
// could not be), and beside them type, recipe (the file), line, flavour, training_script, case and golden (null where
// the script names none) and error (null when fine). A key of the spec hides one of the latter of the same name.
std::string list_json(const Catalogue& catalogue);

// A line a workload and a total, for people.
std::string list_text(const Catalogue& catalogue);

}  // namespace assay::recipe
