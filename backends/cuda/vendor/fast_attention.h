// Attention of prompts by cuDNN: one call a run and layer, on keys and values gathered from the paged cache.
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "backends/cuda/runtime/buffer.h"
#include "backends/cuda/vendor/layouts.h"
#include "backends/cuda/vendor/vendor_table.h"

namespace assay::cuda::vendor {

// Of a run in one pass.
struct RunTokens {
  int least = 1;
  int most = 1;
};

class FastAttention {
 public:
  // For heads.heads query heads in heads.groups groups of heads.channels (64 or 128) channels. Makes the plans of the
  // runs of `tokens` that begin a sequence. kUnsupported without cuDNN, with other shapes, or where cuDNN has no plan
  // for them. Throws CudaError.
  static Result<FastAttention> open(const std::vector<std::filesystem::path>& folders, const AttentionShape& heads,
                                    const RunTokens& tokens);

  // Writes args.y of the run's tokens; keys and values of all its positions are in the cache. False, and nothing done,
  // where only the own kernels can: an fp32 cache, a run that begins at a position that is no multiple of 1,024, a
  // shape that cuDNN refused. Which of the two depends on the run alone; so does the result. Throws CudaError.
  bool run(const AttendArgs& args, const RunPlace& run, cudaStream_t stream);

  std::string version() const;                           // "cuDNN 9.14.0"
  const std::string& engine() const { return engine_; }  // of the largest plan, for people
  uint64_t bytes() const;                                // of device memory, now

 private:
  struct Plan {
    std::unique_ptr<void, void (*)(void*)> plan{nullptr, nullptr};  // null: cuDNN has none
    uint64_t workspace = 0;
  };
  const Plan& plan_of(int queries, int keys);

  const AttentionTable* table_ = nullptr;
  std::unique_ptr<void, void (*)(void*)> handle_{nullptr, nullptr};
  AttentionShape heads_ = {};
  std::string engine_;
  std::string refusal_;                        // cuDNN's words when it last had no plan
  std::map<std::pair<int, int>, Plan> plans_;  // by queries and keys
  DeviceBuffer<std::byte> q_, k_, v_, o_, workspace_;
};

}  // namespace assay::cuda::vendor
