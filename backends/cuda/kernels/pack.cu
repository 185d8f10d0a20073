#include "backends/cuda/kernels/pack.h"
#include "backends/cuda/runtime/error.h"

namespace assay::cuda {
namespace {

constexpr int kThreads = 256;

// One thread a lane of a tile: eight numbers.
__global__ void pack_kernel(PackArgs a) {
  const int k_tiles = (a.cols + kTile - 1) / kTile;
  const int64_t lanes = int64_t{(a.rows + kTile - 1) / kTile} * k_tiles * 32;
  const int64_t index = int64_t{blockIdx.x} * kThreads + threadIdx.x;
  if (index >= lanes) return;
  const int lane = static_cast<int>(index % 32);
  const int64_t tile = index / 32;
  const int row = static_cast<int>(tile / k_tiles) * kTile + lane / 4;
  const int col = static_cast<int>(tile % k_tiles) * kTile + lane % 4 * 2;
  const auto* source = static_cast<const uint16_t*>(a.source);
  uint16_t values[8];
  for (int i = 0; i < 8; ++i) {
    const int r = row + i / 2 % 2 * 8;
    const int c = col + i / 4 * 8 + i % 2;
    values[i] = r < a.rows && c < a.cols ? source[int64_t{r} * a.cols + c] : uint16_t{0};
  }
  uint4 packed;
  packed.x = values[0] | static_cast<uint32_t>(values[1]) << 16;
  packed.y = values[2] | static_cast<uint32_t>(values[3]) << 16;
  packed.z = values[4] | static_cast<uint32_t>(values[5]) << 16;
  packed.w = values[6] | static_cast<uint32_t>(values[7]) << 16;
  static_cast<uint4*>(a.tiles)[int64_t{a.first / kTile} * k_tiles * 32 + index] = packed;
}

}  // namespace

void pack_tiles(const PackArgs& args, cudaStream_t stream) {
  const int64_t lanes = int64_t{(args.rows + kTile - 1) / kTile} * ((args.cols + kTile - 1) / kTile) * 32;
  if (lanes == 0) return;
  pack_kernel<<<static_cast<unsigned>((lanes + kThreads - 1) / kThreads), kThreads, 0, stream>>>(args);
  check_launch("pack_tiles");
}

}  // namespace assay::cuda
