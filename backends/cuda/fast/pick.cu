#include "backends/cuda/fast/pick.cuh"

namespace assay::cuda::fast {
namespace {

__global__ void __launch_bounds__(kThreads) pick_kernel(const PickArgs args) {
  __shared__ PickScratch scratch;
  wait_for_kernel_before();
  start_kernel_after();
  pick_segment(args, blockIdx.x, blockIdx.y, scratch);
}

}  // namespace

cudaError_t pick(const PickArgs& args, const Launch& how) {
  return launch(how, pick_kernel, dim3(args.vocabulary / kVocabularySegment, args.tokens), kThreads, 0, args);
}

}  // namespace assay::cuda::fast
