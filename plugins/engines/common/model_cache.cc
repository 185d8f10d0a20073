#include "plugins/engines/common/model_cache.h"

#include <utility>

#include "assay/sdk.hpp"

namespace assay::engines {

Result<std::unique_ptr<ModelCache>> ModelCache::open(const std::string& engine, const assay_backend_table* backend,
                                                     void* model) {
  if (backend == nullptr || model == nullptr) {
    return invalid("engine " + engine + ": no backend and model given; it does no arithmetic of its own");
  }
  std::unique_ptr<ModelCache> opened(new ModelCache(engine, backend, model));
  opened->info_ = sdk::sized<assay_model_info>();
  if (Status status = sdk::call(backend->model_info, model, &opened->info_); !status.ok()) return status;
  return opened;
}

Status ModelCache::make(uint64_t block_size, uint64_t block_count) {
  if (block_count > INT32_MAX) {
    return invalid("engine " + engine_ + ": KV cache of " + std::to_string(block_count) + " blocks, at most " +
                   std::to_string(INT32_MAX) + " are possible; lower max_requests or max_sequence_length");
  }
  drop();
  auto spec = sdk::sized<assay_cache_spec>();
  spec.block_size = static_cast<uint32_t>(block_size);
  spec.block_count = static_cast<uint32_t>(block_count);
  Status status = sdk::call(backend_->make_cache, model_, &spec, &cache_);
  if (status.ok()) block_count_ = block_count;
  return status;
}

void ModelCache::drop() {
  if (cache_ != nullptr) backend_->release(std::exchange(cache_, nullptr));
  block_count_ = 0;
}

ModelCache::~ModelCache() { drop(); }

Status ModelCache::forward(std::span<const assay_run> runs, std::span<float* const> routing_margins) {
  auto batch = sdk::sized<assay_forward>();
  batch.flags = ASSAY_FORWARD_WAIT;
  batch.runs = runs.data();
  batch.run_count = runs.size();
  batch.routing_margins = routing_margins.empty() ? nullptr : routing_margins.data();
  uint64_t ticket = 0;
  return sdk::call(backend_->forward, model_, cache_, &batch, &ticket);
}

}  // namespace assay::engines
