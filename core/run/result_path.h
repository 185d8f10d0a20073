// Where results may be written: never over what a case is made of.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "assay/case.h"
#include "assay/status.h"

namespace assay::run {

// A file that a run reads.
struct CaseInput {
  std::string what;
  std::filesystem::path path;  // empty: there is none
};

// Fails with kInvalid, in one line, where `path` (`what`: the option it comes from) is one of `inputs`, the config of
// `test` or a golden of its folder: by any name, through links too, and where nothing is there yet. An empty path
// passes.
Status check_result_path(const std::string& what, const std::filesystem::path& path, const TestCase& test,
                         const std::vector<CaseInput>& inputs);

}  // namespace assay::run
