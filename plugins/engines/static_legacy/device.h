// The KV cache as the static engine uses it: one row = one fixed stretch of blocks.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "plugins/engines/common/model_cache.h"
#include "plugins/engines/static_legacy/options.h"

namespace assay::engines {

// The cache is made once. Not thread-safe. Model and table are borrowed and outlive the object.
class Device {
 public:
  // Fails as the backend's model_info and make_cache do; kInvalid without a backend or for a cache beyond 2^31 blocks.
  static Result<std::unique_ptr<Device>> open(const assay_backend_table* backend, void* model,
                                              const StaticOptions& options);

  const assay_model_info& info() const { return cache_->info(); }

  // Block table of a row: covers max_sequence_length tokens. Valid for the life of the object.
  std::span<const int32_t> blocks(size_t row) const;

  // As ModelCache says.
  Status forward(std::span<const assay_run> runs, std::span<float* const> routing_margins) {
    return cache_->forward(runs, routing_margins);
  }

 private:
  explicit Device(std::unique_ptr<ModelCache> cache) : cache_(std::move(cache)) {}

  std::unique_ptr<ModelCache> cache_;
  size_t blocks_per_row_ = 0;
  std::vector<int32_t> tables_;  // (max_requests, blocks_per_row)
};

}  // namespace assay::engines
