// Cases of the self-test: a committed case with other metrics and arguments.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "assay/case.h"
#include "assay/status.h"

namespace assay::self_test {

// What a case of the self-test has in the place of its base.
struct CaseChange {
  std::vector<std::string> metrics = {};              // METRICS
  std::map<std::string, std::string> arguments = {};  // "--seed" -> "3": over MODEL_ARGS
  std::map<std::string, std::string> env_vars = {};   // over ENV_VARS
  std::optional<double> timeout_s = {};               // ASSAY.timeout
  std::optional<uint64_t> memory_limit = {};          // ASSAY.memory_limit, bytes
  std::optional<MetamorphicBlock> metamorphic = {};   // ASSAY.metamorphic: relations judge, and no golden
};

// The case as text of a model_config.yaml that means the same from any folder: files that arguments name become
// absolute paths. Arguments that are lists, and MODEL_ARGS_2 and later ones, are left out.
std::string case_text(const TestCase& base, const CaseChange& change);

}  // namespace assay::self_test
