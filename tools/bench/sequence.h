// One sequence through the backend's table, timed: prompts, single tokens, and a clock around each kernel.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "assay/plugin_abi.h"
#include "core/run/loaded_model.h"
#include "tools/bench/samples.h"

namespace assay::bench {

// As assay_kernel_time.
struct KernelRow {
  std::string name;
  uint64_t launches = 0;
  double bytes = 0;
  double flops = 0;
  double seconds = 0;
};

// A cache for one sequence of at most `positions` tokens. `model` outlives it. For one thread.
class Sequence {
 public:
  static Result<Sequence> open(const run::LoadedModel& model, uint32_t positions);

  // Seconds from the ids of `tokens` tokens at positions 0 .. to the likeliest next id; no logprobs of the prompt.
  Result<double> prefill(uint32_t tokens);

  // Mean seconds of `steps` single tokens, greedy, the first one at position `context`; everything before is in the
  // cache. Each step's id is the likeliest of the step before, and comes back to the caller with its logprob.
  Result<double> decode(uint32_t context, uint32_t steps);

  // Kernels of one pass over `tokens` tokens from position `start` on, each kernel's fastest of three passes. Empty
  // where the backend measures none.
  Result<std::vector<KernelRow>> profile(uint32_t tokens, uint32_t start);

 private:
  struct Release {
    const assay_backend_table* table;
    void operator()(void* cache) const { table->release(cache); }
  };
  Sequence(const run::LoadedModel& model, void* cache, uint32_t blocks);
  assay_run run_of(const std::vector<int32_t>& ids, uint32_t start);
  std::vector<int32_t> some_ids(uint32_t tokens, uint32_t start) const;

  const run::LoadedModel* model_;
  std::unique_ptr<void, Release> cache_;
  std::vector<int32_t> blocks_;
  int32_t sampled_ = 0;
  float logprob_ = 0;
};

}  // namespace assay::bench
