#include "backends/cuda/fast/head.h"
#include "backends/cuda/fast/norm.cuh"

namespace assay::cuda::fast {
namespace {

constexpr int kBlocks = 132;

// A warp has whole row tiles, so that its eight segments meet in registers.
template <int kColumns>
__global__ void __launch_bounds__(kThreads, 2) head_kernel(const HeadArgs args) {
  extern __shared__ __align__(128) char shared[];
  bf16* operand = reinterpret_cast<bf16*>(shared + WeightRing::kBytes);
  float* scratch = reinterpret_cast<float*>(operand + kColumns * operand_stride(kHidden));
  constexpr int kSegments = kHidden / kSegment;
  const int tiles = args.vocabulary / 16;
  const int warps = gridDim.x * kWarps;
  const int first = blockIdx.x * kWarps + threadIdx.x / 32;
  const int units = (tiles - first + warps - 1) / warps * kSegments;
  const auto locate = [&](int n) {
    return n < units ? unit_of(args.weight, first + n / kSegments * warps, n % kSegments, kHidden) : Unit{};
  };
  WeightRing ring(shared);
  ring.fill(locate);
  const RmsNorm norm(args.gamma, args.eps);
  wait_for_kernel_before();
  start_kernel_after();
  norm.run(args.x, args.tokens, operand, scratch);
  float total[4] = {0.0f, 0.0f, 0.0f, 0.0f};
#pragma unroll 1
  for (int n = 0; n < units; ++n) {
    uint4 x[2 * kStages];
    operand_pieces(operand, operand_stride(kHidden), n % kSegments * kSegment, args.tokens, x);
    float sum[4] = {0.0f, 0.0f, 0.0f, 0.0f};
    ring.multiply_unit(n, locate, x, sum);
#pragma unroll
    for (int i = 0; i < 4; ++i) total[i] = __fadd_rn(total[i], sum[i]);
    if (n % kSegments + 1 == kSegments) {
      const int row = (first + n / kSegments * warps) * 16 + threadIdx.x % 32 / 4;
      const int column = 2 * (threadIdx.x % 4);
      float* to = args.logits + row;
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        if (column + i % 2 < args.tokens) {
          to[static_cast<size_t>(column + i % 2) * args.vocabulary + i / 2 * 8] = round_bf16(total[i]);
        }
        total[i] = 0.0f;
      }
    }
  }
}

template <int kColumns>
cudaError_t start(const HeadArgs& args, const Launch& how) {
  const size_t shared =
      WeightRing::kBytes + kColumns * operand_stride(kHidden) * sizeof(bf16) + kNormScratch * sizeof(float);
  const auto kernel = head_kernel<kColumns>;
  const cudaError_t error = cudaFuncSetAttribute(reinterpret_cast<const void*>(kernel),
                                                 cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(shared));
  if (error != cudaSuccess) return error;
  return launch(how, kernel, kBlocks, kThreads, shared, args);
}

}  // namespace

cudaError_t head(const HeadArgs& args, const Launch& how) {
  return args.tokens == 1 ? start<1>(args, how) : start<8>(args, how);
}

}  // namespace assay::cuda::fast
