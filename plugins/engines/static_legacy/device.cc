#include "plugins/engines/static_legacy/device.h"

#include <numeric>
#include <string>

namespace assay::engines {

Result<std::unique_ptr<Device>> Device::open(const assay_backend_table* backend, void* model,
                                             const StaticOptions& options) {
  Result<std::unique_ptr<ModelCache>> cache = ModelCache::open("static_legacy", backend, model);
  if (!cache) return cache.status();
  std::unique_ptr<Device> device(new Device(*std::move(cache)));
  const auto block_size = static_cast<uint64_t>(options.block_size);
  device->blocks_per_row_ = (static_cast<uint64_t>(options.max_sequence_length) + block_size - 1) / block_size;
  const uint64_t block_count = device->blocks_per_row_ * static_cast<uint64_t>(options.max_requests);
  if (Status status = device->cache_->make(block_size, block_count); !status.ok()) {
    return status.with("KV cache of " + std::to_string(options.max_requests) + " rows of " +
                       std::to_string(options.max_sequence_length) + " tokens");
  }
  device->tables_.resize(block_count);
  std::iota(device->tables_.begin(), device->tables_.end(), 0);
  return device;
}

std::span<const int32_t> Device::blocks(size_t row) const {
  return std::span(tables_).subspan(row * blocks_per_row_, blocks_per_row_);
}

}  // namespace assay::engines
