// A YAML file as JSON text, for options that may be written either way.
#pragma once

#include <string>

#include "assay/status.h"

namespace assay::discover {

// The mapping in `file` (YAML, of which JSON is a part) as a JSON object: plain scalars are null, true, false or
// numbers where JSON spells them so, else strings; an empty file is {}. Fails with kNotFound, kInfra or, naming line
// and column, kInvalid: broken YAML, no mapping, a key given twice.
Result<std::string> yaml_file_to_json(const std::string& file);

}  // namespace assay::discover
