#include "backends/cuda/fast/persistent.h"
#include "backends/cuda/fast/persistent_combine.cuh"
#include "backends/cuda/fast/persistent_experts.cuh"

namespace assay::cuda::fast {
namespace {

using namespace persistent;

template <int kColumns>
__global__ void __launch_bounds__(kThreads + 64, 1) persistent_kernel(const __grid_constant__ Args args) {
  extern __shared__ __align__(128) char memory[];
  Shared<kColumns>& shared = *reinterpret_cast<Shared<kColumns>*>(memory);
  if (threadIdx.x == 0) {
    for (int i = 0; i < kUnits<kColumns>; ++i) {
      barrier_init(shared_address(&shared.ring.full[i]));
      barrier_init(shared_address(&shared.ring.empty[i]));
    }
    barrier_init(shared_address(&shared.ring.known));
    barrier_init(shared_address(&shared.ring.attended));
    barrier_publish();
  }
  __syncthreads();
  if (threadIdx.x >= kThreads) {
    if (threadIdx.x == kThreads) {
      Requests<kUnits<kColumns>>(args, shared.routed, shared.tasks, shared.ring).run();
    } else if (threadIdx.x >= kThreads + 32) {
      clear_board(args);
      if (kColumns == 1) route_all(args, shared);
    }
    return;
  }
  Step<kColumns>(args, shared).run();
}

cudaError_t multiprocessors(int& count) {
  int device = 0;
  const cudaError_t error = cudaGetDevice(&device);
  if (error != cudaSuccess) return error;
  return cudaDeviceGetAttribute(&count, cudaDevAttrMultiProcessorCount, device);
}

template <int kColumns>
cudaError_t start(const Args& args, cudaStream_t stream) {
  const auto kernel = persistent_kernel<kColumns>;
  const size_t shared = sizeof(Shared<kColumns>);
  cudaError_t error = cudaFuncSetAttribute(reinterpret_cast<const void*>(kernel),
                                           cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(shared));
  int blocks = 0;
  if (error == cudaSuccess) error = multiprocessors(blocks);
  if (error != cudaSuccess) return error;
  cudaLaunchConfig_t config = {};
  config.gridDim = blocks;
  config.blockDim = kThreads + 64;
  config.dynamicSmemBytes = shared;
  config.stream = stream;
  cudaLaunchAttribute attribute = {};
  attribute.id = cudaLaunchAttributeCooperative;
  attribute.val.cooperative = 1;
  config.attrs = &attribute;
  config.numAttrs = 1;
  return cudaLaunchKernelEx(&config, kernel, args);
}

}  // namespace

bool persistent_takes(const StepArgs& args) {
  const ModelWeights& model = *args.model;
  int blocks = 0;
  if (multiprocessors(blocks) != cudaSuccess || blocks < kHidden / 16) return false;
  if (model.layers.size() > kMostLayers || args.tokens * model.groups * args.splits > kMostTasks * blocks) return false;
  for (const LayerWeights& layer : model.layers) {
    const ExpertWeights& w = layer.experts;
    const bool fits = segments(w.width) <= kMostExpertSegments && segments(w.shared_width) <= kMostSharedSegments &&
                      (args.tokens > 1 || w.topk * w.width + w.shared_width <= kStagedNumbers - kSegment);
    if (!fits) return false;
  }
  return true;
}

bool prefers_persistent(const StepArgs& args) { return args.tokens <= 4 && persistent_takes(args); }

cudaError_t persistent_step(const StepArgs& args, const PersistentArgs& own, cudaStream_t stream) {
  const ModelWeights& model = *args.model;
  const StepBuffers& b = args.buffers;
  if (!persistent_takes(args) || args.tokens > b.shape.tokens || args.splits > b.shape.splits) {
    return cudaErrorInvalidValue;
  }
  Args a = {};
  for (size_t i = 0; i < model.layers.size(); ++i) a.layers[i] = model.layers[i];
  a.layer_count = static_cast<int>(model.layers.size());
  a.groups = model.groups;
  a.heads_per_group = model.heads_per_group;
  a.eps = model.eps;
  a.rounded_router = model.rounded_router;
  a.final_gamma = model.final_gamma;
  a.output = model.output;
  a.vocabulary = model.vocabulary;
  a.embeddings = model.embeddings;
  a.rotary = model.rotary;
  a.buffers = b;
  a.cache = args.cache;
  a.layer_bytes = args.layer_bytes;
  a.tokens = args.tokens;
  a.splits = args.splits;
  a.ids = args.ids;
  a.positions = args.positions;
  a.logits = args.logits;
  a.chosen = args.chosen;
  a.margins = args.margins;
  a.routing_stride = args.routing_stride;
  a.pick = pick_args(args);
  a.counters = b.grid_counters;
  a.in_flight = own.in_flight;
  a.board = b.board;
  a.most_tokens = b.shape.tokens;
  a.board_size = board_size(b.shape);
  a.board_inner = a.board_size - b.shape.widest / 2;
  a.splits_tagged = b.tagged_splits;
  a.times = own.times;
  return args.tokens == 1 ? start<1>(a, stream) : start<8>(a, stream);
}

}  // namespace assay::cuda::fast
