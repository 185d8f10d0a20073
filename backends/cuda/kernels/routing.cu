#include "backends/cuda/kernels/choose.cuh"
#include "backends/cuda/kernels/routing.h"
#include "backends/cuda/runtime/error.h"

namespace assay::cuda {
namespace {

__global__ void choose_kernel(ChooseOnDevice a) {
  extern __shared__ float scratch[];
  const int token = static_cast<int>(blockIdx.x);
  choose_token(a, a.args.logits + int64_t{token} * a.experts, token, scratch);
}

ChooseOnDevice on_device(const ChooseArgs& args) {
  const model::MoeConfig& moe = *args.moe;
  ChooseOnDevice a{args,
                   moe.experts,
                   moe.topk,
                   moe.groups,
                   moe.group_topk,
                   moe.score == model::RouterScore::kSigmoid,
                   moe.pre_softmax,
                   moe.scaling_factor != 1,
                   static_cast<float>(moe.scaling_factor)};
  a.args.moe = nullptr;  // host memory
  return a;
}

}  // namespace

void choose_experts(const ChooseArgs& args, cudaStream_t stream) {
  if (args.tokens == 0) return;
  const ChooseOnDevice a = on_device(args);
  const auto shared = static_cast<size_t>(choose_floats(a.experts, a.groups, a.topk)) * sizeof(float);
  choose_kernel<<<static_cast<unsigned>(args.tokens), 32, shared, stream>>>(a);
  check_launch("choose_experts");
}

}  // namespace assay::cuda
