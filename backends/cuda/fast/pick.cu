#include "backends/cuda/fast/pick.cuh"
#include "backends/cuda/fast/weight_stream.cuh"

namespace assay::cuda::fast {
namespace {

__global__ void __launch_bounds__(kThreads) pick_kernel(const PickArgs args) {
  __shared__ PickScratch scratch;
  wait_for_kernel_before();
  start_kernel_after();
  pick_segment(args, blockIdx.x, blockIdx.y, scratch);
}

__global__ void __launch_bounds__(kThreads) embed_kernel(const EmbedRowsArgs args) {
  wait_for_kernel_before();
  start_kernel_after();
  const int id = args.ids[blockIdx.x];
  for (int i = threadIdx.x; i < kHidden; i += kThreads) {
    args.x[static_cast<size_t>(blockIdx.x) * kHidden + i] = embedded(args.embeddings, id, i);
  }
}

}  // namespace

cudaError_t pick(const PickArgs& args, const Launch& how) {
  return launch(how, pick_kernel, dim3(vocabulary_segments(args.vocabulary), args.tokens), kThreads, 0, args);
}

cudaError_t embed_rows(const EmbedRowsArgs& args, const Launch& how) {
  return launch(how, embed_kernel, args.tokens, kThreads, 0, args);
}

}  // namespace assay::cuda::fast
