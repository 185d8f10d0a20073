#include <algorithm>

#include "backends/cuda/kernels/hopper/copy.cuh"
#include "backends/cuda/kernels/hopper/linear_hopper.h"
#include "backends/cuda/kernels/hopper/multiply.cuh"
#include "backends/cuda/kernels/hopper/write.cuh"
#include "backends/cuda/runtime/error.h"

namespace assay::cuda {
namespace {

__global__ void __launch_bounds__(kHopperThreads, 1) hopper_kernel(const __grid_constant__ HopperWork work) {
  extern __shared__ __align__(1024) uint8_t memory[];
  HopperShared& shared = *reinterpret_cast<HopperShared*>(memory);
  if (threadIdx.x == 0) {
    for (int s = 0; s < kStages; ++s) {
      barrier_init(shared_address(&shared.tokens[s]), kCopyThreads);
      barrier_init(shared_address(&shared.full[s]), 2);
      barrier_init(shared_address(&shared.empty[s]), kMultiplyGroups * kWarpgroup / 32);
    }
    barrier_init(shared_address(&shared.results_full), kMultiplyGroups * kWarpgroup / 32);
    barrier_init(shared_address(&shared.results_empty), kWarpgroup / 32);
    barrier_publish();
  }
  plan_items(work, shared.first);  // and a barrier of the block
  if (threadIdx.x < kWarpgroup) {
    give_registers<kCopyRegisters>();
    if (threadIdx.x < kCopyThreads) {
      copy_items(work, shared);
    } else {
      publish_items(work, shared);
    }
  } else if (threadIdx.x < 2 * kWarpgroup) {
    give_registers<kWriteRegisters>();
    write_items(work, shared);
  } else {
    take_registers<kMultiplyRegisters>();
    multiply_items(work, shared);
  }
}

HopperPart part_of(const LinearJob& job) {
  HopperPart part;
  part.linear = job.linear;
  part.activate = job.activate;
  if (job.linear.groups != nullptr) part.groups = *job.linear.groups;
  part.linear.groups = nullptr;
  part.entries = job.linear.groups == nullptr ? 1 : part.groups.experts;
  part.row_blocks = (job.linear.weight.rows + kItemRowTiles * kTile - 1) / (kItemRowTiles * kTile);
  part.k_tiles = (job.linear.weight.cols + kTile - 1) / kTile;
  return part;
}

int device_attribute(cudaDeviceAttr attribute) {
  int device = 0;
  int value = 0;
  check(cudaGetDevice(&device), "cudaGetDevice");
  check(cudaDeviceGetAttribute(&value, attribute, device), "cudaDeviceGetAttribute");
  return value;
}

}  // namespace

bool hopper_takes(std::span<const LinearJob> jobs) {
  if (jobs.empty() || jobs.size() > kMostJobs) return false;
  int entries = 0;
  for (const LinearJob& job : jobs) {
    const Matrix& weight = job.linear.weight;
    if (!job.linear.x.bf16 || !weight.tiled) return false;
    entries += part_of(job).entries;
    if (job.activate.y.data == nullptr) continue;
    if (job.linear.bias != nullptr || !weight.gated || job.activate.width % kTile != 0) return false;
  }
  return entries <= kMostEntries && device_attribute(cudaDevAttrComputeCapabilityMajor) == 9 &&
         device_attribute(cudaDevAttrComputeCapabilityMinor) == 0;
}

void linear_hopper(std::span<const LinearJob> jobs, cudaStream_t stream) {
  HopperWork work;
  int64_t most_items = 0;
  for (size_t i = 0, p = 0; i < jobs.size(); ++i) {
    if (jobs[i].linear.tokens == 0) continue;
    work.parts[p] = part_of(jobs[i]);
    work.entries += work.parts[p].entries;
    const int tokens = work.parts[p].linear.tokens;
    most_items += int64_t{work.parts[p].row_blocks} * (tokens / kMostTokens + std::min(tokens, work.parts[p].entries));
    ++p;
  }
  if (most_items == 0) return;
  check(cudaFuncSetAttribute(hopper_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                             static_cast<int>(sizeof(HopperShared))),
        "linear_hopper");
  const int64_t blocks = std::min<int64_t>(most_items, device_attribute(cudaDevAttrMultiProcessorCount));
  hopper_kernel<<<static_cast<unsigned>(blocks), kHopperThreads, sizeof(HopperShared), stream>>>(work);
  check_launch("linear_hopper");
}

}  // namespace assay::cuda
