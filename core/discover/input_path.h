// Where a relative path of a case points.
#pragma once

#include <string>

#include "assay/status.h"

namespace assay::discover {

// The root of the repository that holds `case_dir`: the nearest folder above it with .git, else the folder that holds
// tests/functional_tests/..., else empty.
std::string repository_root(const std::string& case_dir);

// `path` itself when absolute; else below the current directory, else below the repository root of the case, else,
// where its folder has the name of the case's folder, that file in the case's folder: the first that exists. kNotFound
// names every place that was tried.
Result<std::string> find_input(const std::string& path, const std::string& case_dir);

}  // namespace assay::discover
