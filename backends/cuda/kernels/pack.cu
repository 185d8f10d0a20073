#include "backends/cuda/kernels/pack.h"
#include "backends/cuda/runtime/error.h"

namespace assay::cuda {
namespace {

constexpr int kThreads = 256;

// One thread a pair of neighbouring columns of a row.
__global__ void pack_kernel(PackArgs a) {
  const int cols = a.matrix.cols;
  const int col = (static_cast<int>(blockIdx.x) * kThreads + static_cast<int>(threadIdx.x)) * 2;
  if (col >= cols) return;
  const auto* source = static_cast<const uint16_t*>(a.source);
  auto* tiles = static_cast<uint32_t*>(const_cast<void*>(a.matrix.data));
  for (int r = static_cast<int>(blockIdx.y); r < a.rows; r += static_cast<int>(gridDim.y)) {
    const int row = a.first + r;
    const int half = a.matrix.rows / 2;
    const int place = !a.matrix.gated ? row : row % half / 8 * kTile + row % half % 8 + row / half * 8;
    const uint16_t* from = source + int64_t{r} * cols + col;
    const uint32_t pair = from[0] | (col + 1 < cols ? static_cast<uint32_t>(from[1]) << 16 : 0u);
    tiles[tiled_index(place, col, cols) / 2] = pair;
  }
}

}  // namespace

void pack_tiles(const PackArgs& args, cudaStream_t stream) {
  if (args.rows == 0 || args.matrix.cols == 0) return;
  constexpr int kMostRows = 65535;
  const dim3 grid(static_cast<unsigned>((args.matrix.cols + 2 * kThreads - 1) / (2 * kThreads)),
                  static_cast<unsigned>(args.rows < kMostRows ? args.rows : kMostRows));
  pack_kernel<<<grid, kThreads, 0, stream>>>(args);
  check_launch("pack_tiles");
}

}  // namespace assay::cuda
