// Test support: models with results that Megatron-LM gave, read from a folder of cases, and a teacher-forced run of
// them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "assay/status.h"
#include "backends/model/config/model_config.h"
#include "backends/reference/border/model.h"

namespace assay::testing {

struct VectorRequest {
  std::vector<int32_t> prompt;     // ids
  std::vector<int32_t> generated;  // ids
  std::vector<double> logprobs;    // prompt (P-1), then generated (G)
};

struct VectorCase {
  std::string name;
  model::ModelConfig config;
  std::string checkpoint;  // folder
  std::vector<VectorRequest> requests;
};

// Case folders below root/cases whose names end in `suffix` ("_b1"), sorted; empty when there is no such folder.
std::vector<std::string> list_cases(const std::string& root, const std::string& suffix);

// Reads root/cases/`name`: model_config.yaml (only lines "  --key: value" of MODEL_ARGS; no anchors), the golden, and
// the vocabulary. ${CHECKPOINT_LOAD_PATH} is `root`. Not for cases that take arguments from the checkpoint
// (kUnsupported).
Result<VectorCase> read_case(const std::string& root, const std::string& name);

struct VectorResult {
  double max_abs_difference = 0;  // of logprobs
  size_t compared = 0;
  size_t tokens = 0;
  size_t tokens_equal = 0;  // argmax of the engine == generated token, teacher-forced
};

// Feeds prompt and generated tokens of every request as one run of `chunk` tokens at a time.
Result<VectorResult> run_case(backend::Model& model, const VectorCase& vector_case, uint32_t chunk);

}  // namespace assay::testing
