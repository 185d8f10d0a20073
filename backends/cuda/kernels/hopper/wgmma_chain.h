// Test support: the same chain of tensor-core instructions by wgmma and by mma.sync.
#pragma once

#include <driver_types.h>

#include <cstdint>

namespace assay::cuda {

struct ChainArgs {
  const void* weights = nullptr;  // (blocks, 4 row tiles, k_tiles) tiles (types.h)
  const uint16_t* x = nullptr;    // (blocks, tokens, 16 k_tiles) bf16
  float* wide = nullptr;          // (blocks, tokens, 64): by wgmma, accumulators zeroed by its scale
  float* narrow = nullptr;        // (blocks, tokens, 64): by mma.sync from +0
  int blocks = 0;
  int tokens = 0;   // one of kChainTokens
  int k_tiles = 0;  // a multiple of 4, 16 at most
};
inline constexpr int kChainTokens[] = {8, 16, 32, 48, 64, 80, 96, 112, 128};

void chain(const ChainArgs& args, cudaStream_t stream);

}  // namespace assay::cuda
