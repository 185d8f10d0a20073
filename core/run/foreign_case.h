// Facts about a case for an engine that does the whole of it by itself, such as a command: member "case" of its
// options.
#pragma once

#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>

#include "assay/case.h"
#include "core/discover/engine_options.h"
#include "core/discover/substitute.h"
#include "core/plugin/plugin.h"

namespace assay::run {

// The engine computes by itself, with arguments that are its own business: it needs no backend and reads no records.
bool is_foreign(const plugin::Plugin& engine);

// Its options_schema has the property "case".
bool wants_case(const plugin::Plugin& engine);

struct ForeignLimits {
  double seconds = 0;   // of the case
  uint64_t memory = 0;  // bytes of anonymous resident memory
};

// The member: name, dir, config (absolute), model_args (words as Megatron-LM's scripts make them), launcher, script,
// checkpoint and tokenizer (found, else as written), output_path, first_id, output_every, time_limit_s, memory_limit.
// Fails as substitution and expansion of MODEL_ARGS do.
Result<nlohmann::ordered_json> case_member(const TestCase& test, const discover::EngineOptions& options,
                                           const discover::Variables& variables, const ForeignLimits& limits);

// The options with `folder` as member "output" of "case"; unchanged where there is no "case".
std::string with_case_folder(const std::string& options, const std::filesystem::path& folder);

}  // namespace assay::run
