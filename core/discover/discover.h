// Finds cases: every directory that holds model_config.yaml.
#pragma once

#include <string>
#include <vector>

#include "assay/case.h"

namespace assay::discover {

// Cases below `paths`, each a case directory, a tree of them, a model_config.yaml or another .yaml file that is read as
// one; sorted by path, each directory once however it is reached (symbolic links are followed, loops are safe; `.git`
// is skipped). A case whose config cannot be read, or a directory that cannot be listed, is in the result with its
// `error` set. Fails with kNotFound for a path that does not exist and kInvalid for another file.
// An empty result is no failure. Reads files only; uses `threads` >= 1 threads for reading configs.
Result<std::vector<TestCase>> discover(const std::vector<std::string>& paths, int threads = 1);

// The case of one config file, named after its folder, and after the file where that is no model_config.yaml. What
// cannot be read is its `error`.
TestCase case_of(const std::string& config);

}  // namespace assay::discover
