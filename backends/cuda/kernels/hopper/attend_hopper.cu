#include "backends/cuda/kernels/hopper/attend_hopper.h"
#include "backends/cuda/kernels/hopper/attention_queries.cuh"
#include "backends/cuda/kernels/hopper/attention_tiles.cuh"
#include "backends/cuda/runtime/error.h"

namespace assay::cuda {
namespace {

using namespace hopper_attention;

template <class Block>
__global__ void __launch_bounds__(Block::kThreads, Block::kResident)
    hopper_kernel(const __grid_constant__ AttendArgs a, int least) {
  extern __shared__ __align__(kEight) uint8_t shared[];
  const uint32_t memory = shared_address(shared);
  const Work work = work_of_block<Block>(a);
  if (work.count <= 0 || work.bundle < least) return;
  const int consumers = (work.count + kGroupRows - 1) / kGroupRows;
  if (threadIdx.x < 16) {
    asm volatile("st.shared.v4.u32 [%0], {%1, %1, %1, %1};" ::"r"(memory + Block::kOnesTile + threadIdx.x * 16),
                 "r"(kOnes)
                 : "memory");
    publish_to_wgmma();
  }
  if (threadIdx.x == 0) {
    for (int stage = 0; stage < Block::kStages; ++stage) {
      for (const Half half : {Half::kKeys, Half::kValues}) {
        const Slot<Block> slot(memory, half, stage);
        barrier_init(slot.full(), kWarpgroup);
        barrier_init(slot.empty(), static_cast<uint32_t>(consumers * kWarpgroup / 32));
      }
    }
    barrier_publish();
  }
  __syncthreads();
  if (threadIdx.x < kWarpgroup) {
    give_registers<Block::kCopierRegisters>();
    Copier<Block>(a, work, memory).copy_tiles();
  } else {
    take_registers<Block::kRegisters>();
    if (static_cast<int>(threadIdx.x) / kWarpgroup <= consumers) Queries<Block>(a, memory).attend();
  }
}

template <class Block>
void launch(const AttendArgs& args, int least, cudaStream_t stream) {
  constexpr auto kShared = static_cast<int>(Block::kBytes);
  check(cudaFuncSetAttribute(hopper_kernel<Block>, cudaFuncAttributeMaxDynamicSharedMemorySize, kShared),
        "attend_hopper");
  const dim3 grid(static_cast<unsigned>(args.cache.groups * args.per_group),
                  static_cast<unsigned>(args.tokens.bundle_count * (kBundle / Block::kRows)));
  hopper_kernel<Block><<<grid, Block::kThreads, kShared, stream>>>(args, least);
  check_launch("attend_hopper");
}

int device_attribute(cudaDeviceAttr attribute) {
  int device = 0;
  int value = 0;
  check(cudaGetDevice(&device), "cudaGetDevice");
  check(cudaDeviceGetAttribute(&value, attribute, device), "cudaDeviceGetAttribute");
  return value;
}

}  // namespace

bool hopper_attends(const AttendArgs& args) {
  return args.cache.bf16 && (args.cache.channels == 64 || args.cache.channels == 128) &&
         args.tokens.bundles != nullptr && device_attribute(cudaDevAttrComputeCapabilityMajor) == 9 &&
         device_attribute(cudaDevAttrComputeCapabilityMinor) == 0;
}

void attend_hopper(const AttendArgs& args, int least, cudaStream_t stream) {
  const int64_t bundles = int64_t{args.tokens.bundle_count} * args.cache.groups * args.per_group;
  if (bundles == 0) return;
  const bool few = bundles <= device_attribute(cudaDevAttrMultiProcessorCount);
  if (args.cache.channels == 64) {
    (few ? launch<BlockOf<64, 1>> : launch<BlockOf<64, 2>>)(args, least, stream);
  } else {
    (few ? launch<BlockOf<128, 1>> : launch<BlockOf<128, 2>>)(args, least, stream);
  }
}

}  // namespace assay::cuda
