// The model and its KV cache as the static engine uses them: one row = one fixed stretch of blocks.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "assay/plugin_abi.h"
#include "assay/status.h"
#include "plugins/engines/static_legacy/options.h"

namespace assay::engines {

// The cache is made once and never cleared: whoever takes over a row must write a position before it is read. Not
// thread-safe. Model and table are borrowed and outlive the object.
class Device {
 public:
  // Fails as the backend's model_info and make_cache do; kInvalid without a backend or for a cache beyond 2^31 blocks.
  static Result<std::unique_ptr<Device>> open(const assay_backend_table* backend, void* model,
                                              const StaticOptions& options);
  ~Device();
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  const assay_model_info& info() const { return info_; }

  // Block table of a row: covers max_sequence_length tokens. Valid for the life of the object.
  std::span<const int32_t> blocks(size_t row) const;

  // One batch, outputs written on return. routing_margins: a pointer a run as in assay_forward, or empty; a backend
  // built for ABI 1.0 does not write them.
  Status forward(std::span<const assay_run> runs, std::span<float* const> routing_margins);

 private:
  Device(const assay_backend_table* backend, void* model) : backend_(backend), model_(model) {}

  const assay_backend_table* backend_;
  void* model_;
  void* cache_ = nullptr;
  assay_model_info info_{};
  size_t blocks_per_row_ = 0;
  std::vector<int32_t> tables_;  // (max_requests, blocks_per_row)
};

}  // namespace assay::engines
