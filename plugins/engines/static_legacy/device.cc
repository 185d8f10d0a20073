#include "plugins/engines/static_legacy/device.h"

#include <numeric>
#include <string>

#include "assay/sdk.hpp"

namespace assay::engines {

Result<std::unique_ptr<Device>> Device::open(const assay_backend_table* backend, void* model,
                                             const StaticOptions& options) {
  if (backend == nullptr || model == nullptr) {
    return invalid("engine static_legacy: no backend and model given; it does no arithmetic of its own");
  }
  std::unique_ptr<Device> device(new Device(backend, model));
  device->info_ = sdk::sized<assay_model_info>();
  if (Status status = sdk::call(backend->model_info, model, &device->info_); !status.ok()) return status;

  const auto block_size = static_cast<uint64_t>(options.block_size);
  device->blocks_per_row_ = (static_cast<uint64_t>(options.max_sequence_length) + block_size - 1) / block_size;
  const uint64_t block_count = device->blocks_per_row_ * static_cast<uint64_t>(options.max_requests);
  if (block_count > INT32_MAX) {
    return invalid("engine static_legacy: KV cache of " + std::to_string(block_count) + " blocks, at most " +
                   std::to_string(INT32_MAX) + " are possible; lower max_requests or max_sequence_length");
  }
  device->tables_.resize(block_count);
  std::iota(device->tables_.begin(), device->tables_.end(), 0);
  auto spec = sdk::sized<assay_cache_spec>();
  spec.block_size = static_cast<uint32_t>(block_size);
  spec.block_count = static_cast<uint32_t>(block_count);
  if (Status status = sdk::call(backend->make_cache, model, &spec, &device->cache_); !status.ok()) {
    return status.with("KV cache of " + std::to_string(options.max_requests) + " rows of " +
                       std::to_string(options.max_sequence_length) + " tokens");
  }
  return device;
}

Device::~Device() {
  if (cache_ != nullptr) backend_->release(cache_);
}

std::span<const int32_t> Device::blocks(size_t row) const {
  return std::span(tables_).subspan(row * blocks_per_row_, blocks_per_row_);
}

Status Device::forward(std::span<const assay_run> runs, std::span<float* const> routing_margins) {
  auto batch = sdk::sized<assay_forward>();
  batch.flags = ASSAY_FORWARD_WAIT;
  batch.runs = runs.data();
  batch.run_count = runs.size();
  batch.routing_margins = routing_margins.empty() ? nullptr : routing_margins.data();
  uint64_t ticket = 0;
  return sdk::call(backend_->forward, model_, cache_, &batch, &ticket);
}

}  // namespace assay::engines
