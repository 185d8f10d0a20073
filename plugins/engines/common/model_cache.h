// A model on its backend and one pool of KV blocks for it.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "assay/plugin_abi.h"
#include "assay/status.h"

namespace assay::engines {

// Failures of the machine or of code, after which the state of the backend is not to be trusted.
inline bool breaks_engine(const Status& status) {
  return status.code() == StatusCode::kInfra || status.code() == StatusCode::kInternal;
}

// The cache is never cleared: whoever takes over a block must write a position before it is read. Not thread-safe.
// Model and table are borrowed and outlive the object; the cache is owned.
class ModelCache {
 public:
  // Without a cache yet. `engine` is named in messages. Fails as the backend's model_info does; kInvalid without a
  // backend.
  static Result<std::unique_ptr<ModelCache>> open(const std::string& engine, const assay_backend_table* backend,
                                                  void* model);
  ~ModelCache();
  ModelCache(const ModelCache&) = delete;
  ModelCache& operator=(const ModelCache&) = delete;

  const assay_model_info& info() const { return info_; }

  // Makes the pool, in place of the one before. Fails as the backend does, then there is none; kInvalid beyond 2^31
  // blocks.
  Status make(uint64_t block_size, uint64_t block_count);
  uint64_t block_count() const { return block_count_; }

  // One batch, outputs written on return. routing_margins: a pointer a run as in assay_forward, or empty; a backend
  // built for ABI 1.0 does not write them.
  Status forward(std::span<const assay_run> runs, std::span<float* const> routing_margins);

 private:
  ModelCache(std::string engine, const assay_backend_table* backend, void* model)
      : engine_(std::move(engine)), backend_(backend), model_(model) {}
  void drop();

  std::string engine_;
  const assay_backend_table* backend_;
  void* model_;
  void* cache_ = nullptr;
  uint64_t block_count_ = 0;
  assay_model_info info_{};
};

}  // namespace assay::engines
