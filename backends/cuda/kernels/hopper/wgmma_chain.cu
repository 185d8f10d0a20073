#include "backends/cuda/kernels/hopper/ptx.cuh"
#include "backends/cuda/kernels/hopper/wgmma.cuh"
#include "backends/cuda/kernels/hopper/wgmma_chain.h"
#include "backends/cuda/kernels/tensor_core.cuh"
#include "backends/cuda/runtime/error.h"

namespace assay::cuda {
namespace {

constexpr int kThreads = 128;
constexpr int kRows = 64;
constexpr int kMostTiles = 16;
constexpr int kMostTokens = 128;
constexpr int kChunkTiles = 4;  // of 16 columns: one swizzled row of 128 bytes
constexpr int kSharedBytes = kMostTiles / kChunkTiles * kMostTokens * 128 + 1024;

template <int kTokens>
__global__ void __launch_bounds__(kThreads) chain_kernel(ChainArgs a) {
  extern __shared__ uint8_t memory[];
  const uint32_t shared = (shared_address(memory) + 1023) / 1024 * 1024;
  const int thread = static_cast<int>(threadIdx.x);
  const int lane = thread % 32;
  const int group = lane / 4;
  const int pair = lane % 4;
  const int64_t block = blockIdx.x;
  const uint4* w = static_cast<const uint4*>(a.weights) + (block * 4 + thread / 32) * a.k_tiles * 32 + lane;
  const uint16_t* x = a.x + block * kTokens * a.k_tiles * 16;
  const int pieces = a.k_tiles * 2;  // of 16 bytes, a token
  for (int i = thread; i < kTokens * pieces; i += kThreads) {
    const int token = i / pieces;
    const int piece = i % pieces;
    copy_async(shared + static_cast<uint32_t>((piece / 8 * kTokens + token) * 128 + (piece % 8 ^ token % 8) * 16),
               x + int64_t{i} * 8);
  }
  asm volatile("cp.async.wait_all;" ::: "memory");
  publish_to_wgmma();
  __syncthreads();
  float wide[kTokens / 2];
  for (float& v : wide) v = 1e30f;  // not to be seen again
  for (int k = 0; k < a.k_tiles; ++k) {
    const uint4 tile = w[k * 32];
    const uint32_t rows = shared + static_cast<uint32_t>(k / kChunkTiles * kTokens * 128);
    wgmma_fence();
    wgmma(wide, tile, descriptor(rows) + static_cast<uint64_t>(k % kChunkTiles * 2), k > 0);
    wgmma_commit();
    wgmma_wait<0>();
  }
#pragma unroll
  for (int i = 0; i < kTokens / 2; ++i) {
    asm volatile("" : "+f"(wide[i])::"memory");
    const int row = thread / 32 * 16 + group + i % 4 / 2 * 8;
    a.wide[(block * kTokens + i / 4 * 8 + pair * 2 + i % 2) * kRows + row] = wide[i];
  }
  for (int first = 0; first < kTokens; first += 8) {
    float d[4] = {};
    const auto* from = reinterpret_cast<const uint32_t*>(x + int64_t{first + group} * a.k_tiles * 16) + pair;
    for (int k = 0; k < a.k_tiles; ++k) mma(d, w[k * 32], from[k * 8], from[k * 8 + 4]);
    for (int i = 0; i < 4; ++i) {
      const int row = thread / 32 * 16 + group + i / 2 * 8;
      a.narrow[(block * kTokens + first + pair * 2 + i % 2) * kRows + row] = d[i];
    }
  }
}

template <int kTokens>
void launch(const ChainArgs& args, cudaStream_t stream) {
  check(cudaFuncSetAttribute(chain_kernel<kTokens>, cudaFuncAttributeMaxDynamicSharedMemorySize, kSharedBytes),
        "chain");
  chain_kernel<kTokens><<<static_cast<unsigned>(args.blocks), kThreads, kSharedBytes, stream>>>(args);
  check_launch("chain");
}

}  // namespace

void chain(const ChainArgs& args, cudaStream_t stream) {
  switch (args.tokens) {
    case 8:
      return launch<8>(args, stream);
    case 16:
      return launch<16>(args, stream);
    case 32:
      return launch<32>(args, stream);
    case 48:
      return launch<48>(args, stream);
    case 64:
      return launch<64>(args, stream);
    case 80:
      return launch<80>(args, stream);
    case 96:
      return launch<96>(args, stream);
    case 112:
      return launch<112>(args, stream);
    default:
      return launch<128>(args, stream);
  }
}

}  // namespace assay::cuda
