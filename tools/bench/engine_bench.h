// Decode of many requests at the same time, through engine `buffered`.
#pragma once

#include <cstdint>

#include "core/plugin/registry.h"
#include "core/run/loaded_model.h"
#include "tools/bench/samples.h"

namespace assay::bench {

struct EnginePlan {
  uint32_t requests = 2;
  uint32_t context = 128;  // tokens of each prompt
  uint32_t steps = 32;     // timed, each giving every request a token
  int rounds = 5;
};

struct EngineFigures {
  Samples step;               // seconds of a step, mean of a round
  double experts_chosen = 0;  // distinct ones, of a step and mixture, in the round that is not timed; 0: no mixture
};

// Of a step, mean of a round, from the step that gave the last request its first token on. Greedy, no logprobs.
// Fails as the engine does, kInternal when a request did not get all of its tokens.
Result<EngineFigures> measure_engine(const run::LoadedModel& model, plugin::PluginRegistry& registry,
                                     const EnginePlan& plan);

}  // namespace assay::bench
