// AttentionTable by cuDNN: plans of the graph in sdpa_graph.h. Uses what cuDNN 9.14 has.
#include <cstdio>
#include <limits>
#include <memory>
#include <vector>

#include "backends/cuda/vendor/cudnn/sdpa_graph.h"

namespace assay::cuda::vendor {
namespace {

constexpr int64_t kMostWorkspace = int64_t{256} << 20;  // bytes

struct Plan {
  AttentionShape shape = {};
  Failure failure = {};
  Descriptor plan = {};
};

int32_t fail(Text* why, const Failure& failure) {
  failure.write(*why);
  return 1;
}

uint64_t loaded() { return cudnnGetVersion(); }

int32_t open(void** handle, Text* why) {
  Failure failure;
  failure.note(cudnnCreate(reinterpret_cast<cudnnHandle_t*>(handle)), "cudnnCreate");
  return failure.any() ? fail(why, failure) : 0;
}

void close(void* handle) { cudnnDestroy(static_cast<cudnnHandle_t>(handle)); }

// The engines that cuDNN's heuristics propose, best first.
std::vector<Descriptor> proposals(const Descriptor& graph, Failure& failure) {
  constexpr int64_t kMost = 16;
  Descriptor heuristics(CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR, failure);
  heuristics.link(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, graph.get());
  heuristics.set_one(CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, CUDNN_HEUR_MODE_A);
  heuristics.finalize("cuDNN's heuristics for attention");
  std::vector<Descriptor> engines;
  std::vector<cudnnBackendDescriptor_t> handles;
  for (int64_t i = 0; i < kMost && !failure.any(); ++i) {
    engines.emplace_back(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR, failure);
    handles.push_back(engines.back().get());
  }
  if (failure.any()) return {};
  int64_t count = 0;
  failure.note(cudnnBackendGetAttribute(heuristics.get(), CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_TYPE_BACKEND_DESCRIPTOR,
                                        kMost, &count, handles.data()),
               "cuDNN's engines for attention");
  engines.resize(static_cast<size_t>(failure.any() ? 0 : count));
  return engines;
}

int64_t engine_number(const Descriptor& config) {
  Failure ignored;
  Descriptor engine(CUDNN_BACKEND_ENGINE_DESCRIPTOR, ignored);
  cudnnBackendDescriptor_t handle = engine.get();
  int64_t count = 0;
  int64_t number = -1;
  cudnnBackendGetAttribute(config.get(), CUDNN_ATTR_ENGINECFG_ENGINE, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &count,
                           &handle);
  cudnnBackendGetAttribute(handle, CUDNN_ATTR_ENGINE_GLOBAL_INDEX, CUDNN_TYPE_INT64, 1, &count, &number);
  return number;
}

int32_t plan(void* handle, const AttentionShape* shape, void** made, uint64_t* workspace, Text* name, Text* why) {
  const auto cudnn = static_cast<cudnnHandle_t>(handle);
  Failure failure;
  SdpaGraph operations(*shape, failure);
  const Descriptor graph = operations.finish(cudnn);
  if (failure.any()) return fail(why, failure);
  const std::vector<Descriptor> engines = proposals(graph, failure);
  if (failure.any()) return fail(why, failure);
  for (const Descriptor& engine : engines) {
    auto attempt = std::make_unique<Plan>();
    attempt->shape = *shape;
    attempt->plan = Descriptor(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR, attempt->failure);
    attempt->plan.set_one(CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE, cudnn);
    attempt->plan.link(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, engine.get());
    attempt->plan.finalize("cuDNN's plan for attention");
    int64_t bytes = 0;
    int64_t count = 0;
    if (attempt->failure.any() ||
        !attempt->failure.note(cudnnBackendGetAttribute(attempt->plan.get(), CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE,
                                                        CUDNN_TYPE_INT64, 1, &count, &bytes),
                               "cuDNN's workspace for attention")) {
      attempt->failure.write(*why);
      continue;
    }
    if (bytes > kMostWorkspace) {
      std::snprintf(why->line, sizeof(why->line), "a plan needs %lld bytes of workspace",
                    static_cast<long long>(bytes));
      continue;
    }
    std::snprintf(name->line, sizeof(name->line), "engine %lld", static_cast<long long>(engine_number(engine)));
    *workspace = static_cast<uint64_t>(bytes);
    *made = attempt.release();
    return 0;
  }
  if (engines.empty()) std::snprintf(why->line, sizeof(why->line), "no engine for this attention");
  return 1;
}

void drop(void* plan) { delete static_cast<Plan*>(plan); }

int32_t run(void* handle, void* made, const AttentionCall* call, Text* why) {
  const auto cudnn = static_cast<cudnnHandle_t>(handle);
  const Plan& plan = *static_cast<Plan*>(made);
  float scale = call->scale;
  float lowest = -std::numeric_limits<float>::infinity();
  int32_t keys = plan.shape.keys;
  int32_t queries = plan.shape.queries;
  std::vector<int64_t> ids{kQ, kK, kV, kO, kScale, kLowest};
  std::vector<void*> data{
      const_cast<void*>(call->q), const_cast<void*>(call->k), const_cast<void*>(call->v), call->o, &scale, &lowest};
  if (keys != queries) {
    ids.insert(ids.end(), {kKeys, kQueries});
    data.insert(data.end(), {&keys, &queries});
  }
  Failure failure;
  Descriptor pack(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR, failure);
  pack.set(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64, ids);
  pack.set(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, data);
  pack.set_one(CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, call->workspace);
  pack.finalize("cuDNN's arguments of attention");
  if (!failure.any()) failure.note(cudnnSetStream(cudnn, call->stream), "cudnnSetStream");
  if (!failure.any()) failure.note(cudnnBackendExecute(cudnn, plan.plan.get(), pack.get()), "cudnnBackendExecute");
  return failure.any() ? fail(why, failure) : 0;
}

constexpr AttentionTable kTable{{kTableVersion, "cuDNN", loaded}, open, close, plan, drop, run};

}  // namespace
}  // namespace assay::cuda::vendor

extern "C" __attribute__((visibility("default"))) const assay::cuda::vendor::TableHead* assay_vendor_query() {
  return &assay::cuda::vendor::kTable.head;
}
