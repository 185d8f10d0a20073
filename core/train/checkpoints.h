// Folders of checkpoints between the runs of a training case.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "assay/status.h"

namespace assay::train {

// Number in latest_checkpointed_iteration.txt; 0 where it holds none.
int64_t tracked_iteration(const std::string& folder);

// "iter_0000050".
std::string iteration_name(int64_t iteration);

bool is_empty_or_absent(const std::string& folder);

// Renames a file or folder of an earlier run to the first free one of PATH.before_1, PATH.before_2 ... Fails with
// kInfra.
Status set_aside(const std::string& path);

// A view of `saved` in which iteration `half` is the latest: links to everything in it, without what is later, and a
// tracker file of its own. `saved` stays as it is. Fails with kInvalid where `saved` holds iterations, but not `half`;
// with kInfra where the folder cannot be made.
Status make_resume_view(const std::string& saved, int64_t half, const std::string& view);

}  // namespace assay::train
