// Result files of the common form, read quickly.
#pragma once

#include <optional>
#include <string_view>

#include "assay/golden.h"

namespace assay::json {

// The requests (in the order of the text), quantities and provenance of a document, exactly as ResultBuilder makes
// them, path and form left out; or nullopt when anything about it is unusual: wrong in any way, worth a note, a key
// that occurs twice, a JSON string as top level. ResultBuilder has the last word on such documents. Thread-safe.
std::optional<ResultSet> read_fast(std::string_view document);

}  // namespace assay::json
