// What `assay show CASE` prints.
#pragma once

#include <string>

#include "assay/case.h"
#include "backends/model/config/resolve_model.h"
#include "core/discover/arguments.h"

namespace assay::discover {

// The command line of one run of the case.
struct ShownWords {
  std::string name;  // "MODEL_ARGS", "MODEL_ARGS_2"
  std::vector<ArgumentWord> words;
};

// Everything but the case may be absent: what could not be had is shown as an error line, never left out.
struct ShowInput {
  const TestCase& test_case;
  const ParsedArguments* arguments = nullptr;     // of read_arguments
  const model::ResolvedModel* model = nullptr;    // of resolve_model
  std::vector<ShownWords> words = {};             // of words_to_show
  std::vector<std::string> prompts = {};          // of load_prompts
  std::string today = {};                         // UTC, "2026-11-29": waivers are shown with the days left
  std::vector<std::string> judging_goldens = {};  // names of golden files that would judge, in the order of resolution
  std::vector<std::string> errors = {};           // one line each
  std::vector<std::string> notes = {};            // one line each
};

std::string show_text(const ShowInput& input);

// One JSON object: name, path, mode, test_type, launcher, engine, metrics, env_vars, words (MODEL_ARGS, MODEL_ARGS_2,
// ...: the words that Megatron-LM's harness would make), arguments (option, values, class, reason, overridden), model
// (config and origins, or null), prompts, goldens, judging_goldens, workers_per_device, metamorphic (relations, and the
// members that ASSAY.metamorphic gives; null: the case is judged by a golden), waivers (members of ASSAY.waivers,
// days_left, which is negative once it has expired), notes, errors.
std::string show_json(const ShowInput& input);

}  // namespace assay::discover
