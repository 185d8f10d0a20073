#include <algorithm>
#include <string>

#include "backends/cuda/kernels/hopper/copy.cuh"
#include "backends/cuda/kernels/hopper/linear_hopper.h"
#include "backends/cuda/kernels/hopper/multiply.cuh"
#include "backends/cuda/kernels/hopper/write.cuh"
#include "backends/cuda/runtime/error.h"

namespace assay::cuda {
namespace {

template <class Blocks>
__global__ void __launch_bounds__(kHopperThreads, 1) hopper_kernel(const __grid_constant__ HopperWork work) {
  extern __shared__ __align__(1024) uint8_t memory[];
  HopperShared& shared = *reinterpret_cast<HopperShared*>(memory);
  if (threadIdx.x == 0) {
    for (int s = 0; s < kStages; ++s) {
      barrier_init(shared_address(&shared.tokens[s]), kTokenThreads);
      barrier_init(shared_address(&shared.full[s]), 2);
      barrier_init(shared_address(&shared.empty[s]), Blocks::kBlocks * kMultiplyGroups * kWarpgroup / 32);
    }
    barrier_init(shared_address(&shared.results_full), kMultiplyGroups * kWarpgroup / 32);
    barrier_init(shared_address(&shared.results_empty), kWarpgroup / 32);
    barrier_publish();
  }
  if (work.groups_are_new) wait_for_kernel_before();
  plan_items<Blocks>(work, shared.plan);  // and a barrier of the block
  if constexpr (Blocks::kBlocks > 1) cluster_sync();
  start_kernel_after();
  if (threadIdx.x < kWarpgroup) {
    give_registers<kCopyRegisters>();
    if (threadIdx.x < 32) {
      if (threadIdx.x == 0) copy_boxes<Blocks>(work, shared);
    } else if (threadIdx.x < 32 + kTokenThreads) {
      copy_tokens<Blocks>(work, shared);
    } else {
      publish_items<Blocks>(work, shared);
    }
  } else if (threadIdx.x < 2 * kWarpgroup) {
    give_registers<kWriteRegisters>();
    write_items<Blocks>(work, shared);
  } else {
    take_registers<kMultiplyRegisters>();
    multiply_items<Blocks>(work, shared);
  }
  if constexpr (Blocks::kBlocks > 1) {
    __syncwarp();
    cluster_sync();  // no block ends while another may still write to it
  }
}

// One block a row.
__global__ void sort_rows_kernel(SortRowsArgs a, int pieces) {
  start_kernel_after();
  const int64_t row = a.order[blockIdx.x] / a.divisor;
  const auto* from = static_cast<const uint4*>(a.x.data) + row * pieces;
  auto* to = static_cast<uint4*>(a.y.data) + int64_t{blockIdx.x} * pieces;
  for (int i = static_cast<int>(threadIdx.x); i < pieces; i += static_cast<int>(blockDim.x)) to[i] = from[i];
}

int row_blocks(const Matrix& weight, int tiles) { return (weight.rows + tiles * kTile - 1) / (tiles * kTile); }

// Whether items of half the rows are better for jobs[i]: alone, where they keep more of the multiprocessors busy,
// though two of them cost more than a whole one; beside another job, where a whole one would take much longer than its
// items.
bool narrow_pays(std::span<const HopperJob> jobs, size_t i, int multiprocessors) {
  constexpr int kFewTokens = 64;
  const LinearArgs& a = jobs[i].job.linear;
  if (a.groups != nullptr || a.tokens > kFewTokens) return false;
  if (jobs.size() > 1) return a.weight.cols * 2 > jobs[1 - i].job.linear.weight.cols * 3;
  const auto rounds = [&](int tiles) { return (row_blocks(a.weight, tiles) + multiprocessors - 1) / multiprocessors; };
  return rounds(kNarrowRowTiles) * 11 < rounds(kItemRowTiles) * 20;
}

HopperPart part_of(const LinearJob& job) {
  HopperPart part;
  part.linear = job.linear;
  part.activate = job.activate;
  if (job.linear.groups != nullptr) part.groups = *job.linear.groups;
  part.linear.groups = nullptr;
  part.entries = job.linear.groups == nullptr ? 1 : part.groups.experts;
  part.row_tiles = (job.linear.weight.rows + kTile - 1) / kTile;
  part.k_tiles = (job.linear.weight.cols + kTile - 1) / kTile;
  return part;
}

// A matrix (rows, row_bytes) in boxes of `box` elements of a row and some rows.
struct MapSpec {
  CUtensorMapDataType type;
  const void* data;
  cuuint64_t row_elements;
  cuuint64_t row_bytes;
  cuuint64_t rows;
  cuuint32_t box[2];
  CUtensorMapSwizzle swizzle;
};

// By the driver's function, of which the runtime has no version.
void encode_map(CUtensorMap& map, const MapSpec& spec) {
  void* function = nullptr;
  cudaDriverEntryPointQueryResult found = cudaDriverEntryPointSymbolNotFound;
  constexpr unsigned kSince = 12000;
  check(cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &function, kSince, cudaEnableDefault, &found),
        "cuTensorMapEncodeTiled");
  if (found != cudaDriverEntryPointSuccess) throw CudaError("cuTensorMapEncodeTiled", cudaErrorCallRequiresNewerDriver);
  const auto encode = reinterpret_cast<decltype(&cuTensorMapEncodeTiled)>(function);
  const cuuint64_t size[2] = {spec.row_elements, spec.rows};
  const cuuint32_t steps[2] = {1, 1};
  const CUresult result = encode(&map, spec.type, 2, const_cast<void*>(spec.data), size, &spec.row_bytes, spec.box,
                                 steps, CU_TENSOR_MAP_INTERLEAVE_NONE, spec.swizzle, CU_TENSOR_MAP_L2_PROMOTION_L2_256B,
                                 CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  if (result == CUDA_SUCCESS) return;
  throw CudaError("cuTensorMapEncodeTiled of " + std::to_string(spec.rows) + " rows of " +
                      std::to_string(spec.row_bytes) + " bytes",
                  cudaErrorInvalidValue);
}

template <class Blocks>
void map_weights(HopperPart& part) {
  const auto row_bytes = static_cast<cuuint64_t>(part.k_tiles * kTileBytes);
  encode_map(part.map, {CU_TENSOR_MAP_DATA_TYPE_INT64,
                        part.linear.weight.data,
                        row_bytes / kMapBytes,
                        row_bytes,
                        static_cast<cuuint64_t>(part.row_tiles) * static_cast<cuuint64_t>(part.entries),
                        {kRunBytes / kMapBytes, static_cast<cuuint32_t>(part.item_tiles / Blocks::kTiles)},
                        CU_TENSOR_MAP_SWIZZLE_NONE});
}

// The tokens of every item lie together.
bool boxed(const HopperJob& job) {
  return job.job.linear.groups == nullptr ? job.job.linear.x_divisor == 1 : job.sorted_x;
}

// Boxes that fit what an expert has on average, at least one for each block of a tile.
template <class Blocks>
void map_tokens(HopperPart& part) {
  constexpr int kSmallBox = 16;
  constexpr int kLargeBox = 64;
  const Inputs& x = part.linear.x;
  const int tokens = part.linear.tokens;
  if (part.groups.order == nullptr) {
    part.box_rows = round_up((tile_tokens(tokens, Blocks::kTiles) + Blocks::kRows - 1) / Blocks::kRows, kTileTokens);
  } else {
    part.box_rows = tokens >= part.entries * (kLargeBox * 3 / 4) ? kLargeBox / Blocks::kRows : kSmallBox;
  }
  encode_map(part.x_map, {CU_TENSOR_MAP_DATA_TYPE_BFLOAT16,
                          x.data,
                          static_cast<cuuint64_t>(part.k_tiles * kTile),
                          static_cast<cuuint64_t>(x.stride) * 2,
                          static_cast<cuuint64_t>(tokens),
                          {kChunkTiles * kTile, static_cast<cuuint32_t>(part.box_rows)},
                          CU_TENSOR_MAP_SWIZZLE_128B});
}

int device_attribute(cudaDeviceAttr attribute) {
  int device = 0;
  int value = 0;
  check(cudaGetDevice(&device), "cudaGetDevice");
  check(cudaDeviceGetAttribute(&value, attribute, device), "cudaDeviceGetAttribute");
  return value;
}

// How many blocks share what they read: measured on an H200, two where an expert has a few tokens (3 to 10 % faster),
// four (two tiles of tokens) where one layer alone would leave multiprocessors idle.
int blocks_together(std::span<const HopperJob> jobs, int multiprocessors) {
  constexpr int kPairTokens = 4;  // an expert, on average
  for (const HopperJob& job : jobs) {
    const LinearArgs& a = job.job.linear;
    if (!boxed(job) || a.weight.rows <= kItemRows) return 1;
    if (a.tokens < kPairTokens * (a.groups == nullptr ? 1 : a.groups->experts)) return 1;
  }
  const LinearArgs& first = jobs[0].job.linear;
  if (jobs.size() > 1 || first.groups != nullptr) return 2;
  if (narrow_pays(jobs, 0, multiprocessors)) return 1;
  return first.tokens <= kMostTokens && row_blocks(first.weight, kItemRowTiles) < multiprocessors ? 4 : 2;
}

template <class Blocks>
void launch(std::span<const HopperJob> jobs, cudaStream_t stream) {
  const int multiprocessors = device_attribute(cudaDevAttrMultiProcessorCount);
  HopperWork work;
  int64_t most_items = 0;
  size_t p = 0;
  // Layers that all tokens go through come first: their items take longest.
  const bool swapped = jobs.size() == 2 && jobs[0].job.linear.groups != nullptr;
  for (size_t i = 0; i < jobs.size(); ++i) {
    const size_t place = swapped ? 1 - i : i;
    const HopperJob& job = jobs[place];
    const LinearArgs& linear = job.job.linear;
    if (linear.tokens == 0) continue;
    HopperPart& part = work.parts[p++];
    part = part_of(job.job);
    part.sorted_inner = job.sorted_inner;
    work.groups_are_new = work.groups_are_new || (linear.groups != nullptr && !job.old_groups);
    if (Blocks::kBlocks == 1 && narrow_pays(jobs, place, multiprocessors)) part.item_tiles = kNarrowRowTiles;
    part.row_blocks = (row_blocks(linear.weight, part.item_tiles) + Blocks::kRows - 1) / Blocks::kRows;
    map_weights<Blocks>(part);
    if (boxed(job)) map_tokens<Blocks>(part);
    work.entries += part.entries;
    most_items += int64_t{part.row_blocks} * (linear.tokens / kMostTokens + std::min(linear.tokens, part.entries));
  }
  if (most_items == 0) return;
  check(cudaFuncSetAttribute(hopper_kernel<Blocks>, cudaFuncAttributeMaxDynamicSharedMemorySize,
                             static_cast<int>(sizeof(HopperShared))),
        "linear_hopper");
  cudaLaunchAttribute attributes[2] = {};
  attributes[0].id = cudaLaunchAttributeProgrammaticStreamSerialization;
  attributes[0].val.programmaticStreamSerializationAllowed = 1;
  attributes[1].id = cudaLaunchAttributeClusterDimension;
  attributes[1].val.clusterDim = {Blocks::kBlocks, 1, 1};
  cudaLaunchConfig_t config = {};
  config.gridDim = static_cast<unsigned>(multiprocessors / Blocks::kBlocks * Blocks::kBlocks);
  config.blockDim = kHopperThreads;
  config.dynamicSmemBytes = sizeof(HopperShared);
  config.stream = stream;
  config.attrs = attributes;
  config.numAttrs = Blocks::kBlocks == 1 ? 1 : 2;
  int clusters = multiprocessors;  // at a time: one whose blocks wait for a place would double the time
  if (Blocks::kBlocks > 1) {
    check(cudaOccupancyMaxActiveClusters(&clusters, hopper_kernel<Blocks>, &config), "cudaOccupancyMaxActiveClusters");
  }
  config.gridDim = static_cast<unsigned>(std::min<int64_t>(most_items, clusters) * Blocks::kBlocks);
  check(cudaLaunchKernelEx(&config, hopper_kernel<Blocks>, work), "linear_hopper");
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

void linear_hopper(std::span<const HopperJob> jobs, cudaStream_t stream, int together) {
  if (together == 0) together = blocks_together(jobs, device_attribute(cudaDevAttrMultiProcessorCount));
  switch (together) {
    case 1:
      return launch<Cluster<1, 1>>(jobs, stream);
    case 2:
      return launch<Cluster<2, 1>>(jobs, stream);
    default:
      return launch<Cluster<2, 2>>(jobs, stream);
  }
}

void sort_rows(const SortRowsArgs& args, cudaStream_t stream) {
  if (args.slots == 0) return;
  constexpr int kMostThreads = 256;
  const int pieces = args.x.stride / 8;  // of 16 bytes
  const auto threads = static_cast<unsigned>(std::min(kMostThreads, round_up(pieces, 32)));
  sort_rows_kernel<<<static_cast<unsigned>(args.slots), threads, 0, stream>>>(args, pieces);
  check_launch("sort_rows");
}

}  // namespace assay::cuda
