// Runs the measurements of `assay bench decode` and `assay bench prefill`.
#pragma once

#include <vector>

#include "core/plugin/registry.h"
#include "tools/bench/opened.h"
#include "tools/bench/report.h"

namespace assay::bench {

struct DecodePlan {
  std::vector<uint32_t> contexts = {128};   // tokens, each >= 1
  std::vector<uint32_t> concurrency = {1};  // sequences at a time; more than one: through engine `buffered`
  uint32_t steps = 32;                      // of a round
  int rounds = 5;
  bool kernels = true;  // a table of kernels too, where the backend measures them
};

struct PrefillPlan {
  std::vector<uint32_t> tokens = {128, 1024};  // prompts, each >= 1
  int rounds = 5;
  bool kernels = true;
};

// The first round of everything is not counted. Fails as model, engine and device do.
Result<BenchReport> measure_decode(const Opened& opened, plugin::PluginRegistry& registry, const DecodePlan& plan);
Result<BenchReport> measure_prefill(const Opened& opened, const PrefillPlan& plan);

}  // namespace assay::bench
