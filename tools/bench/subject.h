// The model that a benchmark measures.
#pragma once

#include <string>
#include <vector>

#include "backends/model/config/model_config.h"
#include "core/discover/substitute.h"

namespace assay::bench {

struct SubjectSources {
  std::vector<std::string> words;  // one CASE, or MODEL_ARGS as words beginning with "--"; or none
  std::string checkpoint;          // folder; empty: what --load says
  bool random = false;             // weights are made up: no checkpoint is looked at
  discover::Variables variables;   // of the case; with random weights, unset ones stand for nothing
};

struct Subject {
  model::ModelConfig config;
  std::string checkpoint;  // folder; empty with random weights
};

// Arguments stored in the checkpoint count as in a run; without a case or arguments they are all there is. No
// tokenizer is opened: its size is --vocab-size, else 131072 for TikTokenizer. Fails with the line of what is missing
// or wrong.
Result<Subject> find_subject(const SubjectSources& sources);

}  // namespace assay::bench
