// The folders of cases of a merged run.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "assay/status.h"

namespace assay::run {

// Folder of one case: `from` becomes OUTPUT/cases/ID.
struct CaseFolder {
  std::string id;
  std::filesystem::path from;  // absolute; its last parts, the id, may be links; need not exist
};

// Makes OUTPUT/cases anew: a relative link to each folder, or with `copy` a copy. A folder that holds other cases'
// folders has links to what is in it. kInfra names what could not be made, or read.
Status place_cases(const std::filesystem::path& output, const std::vector<CaseFolder>& folders, bool copy);

}  // namespace assay::run
