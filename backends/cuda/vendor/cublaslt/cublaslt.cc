// GemmTable by cuBLASLt.
#include <cublasLt.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstring>

#include "backends/cuda/vendor/vendor_table.h"

namespace assay::cuda::vendor {
namespace {

static_assert(sizeof(cublasLtMatmulAlgo_t) == sizeof(GemmChoice::algorithm));

int32_t fail(Text* why, const char* call, cublasStatus_t status) {
  std::snprintf(why->line, sizeof(why->line), "%s: %s", call, cublasLtGetStatusName(status));
  return 1;
}

// What cublasLtMatmul is told of one shape. In cuBLASLt's column-major terms: D (rows x tokens) = W^T X, W (cols x
// rows), X (cols x tokens).
class Problem {
 public:
  Problem() = default;
  Problem(const Problem&) = delete;
  Problem& operator=(const Problem&) = delete;
  ~Problem() {
    for (const cublasLtMatrixLayout_t layout : {weight_, x_, y_}) {
      if (layout != nullptr) cublasLtMatrixLayoutDestroy(layout);
    }
    if (operation_ != nullptr) cublasLtMatmulDescDestroy(operation_);
  }

  cublasStatus_t make(const GemmShape& shape) {
    const auto rows = static_cast<uint64_t>(shape.rows);
    const auto cols = static_cast<uint64_t>(shape.cols);
    const auto tokens = static_cast<uint64_t>(shape.tokens);
    constexpr cublasOperation_t kTransposed = CUBLAS_OP_T;
    const std::array statuses{
        cublasLtMatmulDescCreate(&operation_, CUBLAS_COMPUTE_32F, CUDA_R_32F),
        cublasLtMatmulDescSetAttribute(operation_, CUBLASLT_MATMUL_DESC_TRANSA, &kTransposed, sizeof(kTransposed)),
        cublasLtMatrixLayoutCreate(&weight_, CUDA_R_16BF, cols, rows, shape.cols),
        cublasLtMatrixLayoutCreate(&x_, CUDA_R_16BF, cols, tokens, shape.x_stride),
        cublasLtMatrixLayoutCreate(&y_, CUDA_R_32F, rows, tokens, shape.y_stride)};
    const auto* failed =
        std::find_if(statuses.begin(), statuses.end(), [](cublasStatus_t s) { return s != CUBLAS_STATUS_SUCCESS; });
    return failed == statuses.end() ? CUBLAS_STATUS_SUCCESS : *failed;
  }

  cublasLtMatmulDesc_t operation() const { return operation_; }
  cublasLtMatrixLayout_t weight() const { return weight_; }
  cublasLtMatrixLayout_t x() const { return x_; }
  cublasLtMatrixLayout_t y() const { return y_; }

 private:
  cublasLtMatmulDesc_t operation_ = nullptr;
  cublasLtMatrixLayout_t weight_ = nullptr;
  cublasLtMatrixLayout_t x_ = nullptr;
  cublasLtMatrixLayout_t y_ = nullptr;
};

class Preference {
 public:
  Preference() = default;
  Preference(const Preference&) = delete;
  Preference& operator=(const Preference&) = delete;
  ~Preference() {
    if (preference_ != nullptr) cublasLtMatmulPreferenceDestroy(preference_);
  }
  // No partial sums of a split K, whatever their number type.
  cublasStatus_t make(uint64_t workspace) {
    constexpr uint32_t kNoReduction = CUBLASLT_REDUCTION_SCHEME_NONE;
    cublasStatus_t status = cublasLtMatmulPreferenceCreate(&preference_);
    if (status != CUBLAS_STATUS_SUCCESS) return status;
    status = cublasLtMatmulPreferenceSetAttribute(preference_, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK,
                                                  &kNoReduction, sizeof(kNoReduction));
    if (status != CUBLAS_STATUS_SUCCESS) return status;
    return cublasLtMatmulPreferenceSetAttribute(preference_, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &workspace,
                                                sizeof(workspace));
  }
  cublasLtMatmulPreference_t get() const { return preference_; }

 private:
  cublasLtMatmulPreference_t preference_ = nullptr;
};

template <class T>
T attribute(const cublasLtMatmulAlgo_t& algorithm, cublasLtMatmulAlgoConfigAttributes_t which) {
  T value{};
  cublasLtMatmulAlgoConfigGetAttribute(&algorithm, which, &value, sizeof(value), nullptr);
  return value;
}

// False: K would be split after all.
bool describe(const cublasLtMatmulAlgo_t& algorithm, GemmChoice& choice) {
  const auto splits = attribute<int32_t>(algorithm, CUBLASLT_ALGO_CONFIG_SPLITK_NUM);
  const auto reduction = attribute<uint32_t>(algorithm, CUBLASLT_ALGO_CONFIG_REDUCTION_SCHEME);
  if (splits > 1 || reduction != CUBLASLT_REDUCTION_SCHEME_NONE) return false;
  std::memcpy(choice.algorithm, &algorithm, sizeof(algorithm));
  std::snprintf(choice.name, sizeof(choice.name), "%d.%u.%u.%u.%u",
                attribute<int32_t>(algorithm, CUBLASLT_ALGO_CONFIG_ID),
                attribute<uint32_t>(algorithm, CUBLASLT_ALGO_CONFIG_TILE_ID),
                attribute<uint32_t>(algorithm, CUBLASLT_ALGO_CONFIG_STAGES_ID),
                static_cast<unsigned>(attribute<uint16_t>(algorithm, CUBLASLT_ALGO_CONFIG_CLUSTER_SHAPE_ID)),
                attribute<uint32_t>(algorithm, CUBLASLT_ALGO_CONFIG_CUSTOM_OPTION));
  return true;
}

cublasLtMatmulAlgo_t algorithm_of(const GemmChoice& choice) {
  cublasLtMatmulAlgo_t algorithm;
  std::memcpy(&algorithm, choice.algorithm, sizeof(algorithm));
  return algorithm;
}

uint64_t loaded() { return cublasLtGetVersion(); }

int32_t open(void** handle, Text* why) {
  const cublasStatus_t status = cublasLtCreate(reinterpret_cast<cublasLtHandle_t*>(handle));
  return status == CUBLAS_STATUS_SUCCESS ? 0 : fail(why, "cublasLtCreate", status);
}

void close(void* handle) { cublasLtDestroy(static_cast<cublasLtHandle_t>(handle)); }

int32_t choose(void* handle, const GemmShape* shape, uint64_t workspace, int32_t most, GemmChoice* choices,
               int32_t* count, Text* why) {
  constexpr int kMost = 32;
  Problem problem;
  Preference preference;
  std::array<cublasLtMatmulHeuristicResult_t, kMost> results{};
  int found = 0;
  *count = 0;
  if (const cublasStatus_t status = problem.make(*shape); status != CUBLAS_STATUS_SUCCESS) {
    return fail(why, "cublasLt descriptors", status);
  }
  if (const cublasStatus_t status = preference.make(workspace); status != CUBLAS_STATUS_SUCCESS) {
    return fail(why, "cublasLtMatmulPreference", status);
  }
  const cublasStatus_t status = cublasLtMatmulAlgoGetHeuristic(
      static_cast<cublasLtHandle_t>(handle), problem.operation(), problem.weight(), problem.x(), problem.y(),
      problem.y(), preference.get(), std::min(most, kMost), results.data(), &found);
  if (status == CUBLAS_STATUS_NOT_SUPPORTED) return 0;
  if (status != CUBLAS_STATUS_SUCCESS) return fail(why, "cublasLtMatmulAlgoGetHeuristic", status);
  for (int i = 0; i < found && *count < most; ++i) {
    const cublasLtMatmulHeuristicResult_t& result = results[static_cast<size_t>(i)];
    if (result.state != CUBLAS_STATUS_SUCCESS || result.workspaceSize > workspace) continue;
    if (describe(result.algo, choices[*count])) ++*count;
  }
  return 0;
}

int32_t fits(void* handle, const GemmShape* shape, const GemmChoice* choice, uint64_t workspace) {
  Problem problem;
  if (problem.make(*shape) != CUBLAS_STATUS_SUCCESS) return 0;
  const cublasLtMatmulAlgo_t algorithm = algorithm_of(*choice);
  cublasLtMatmulHeuristicResult_t result{};
  const cublasStatus_t status =
      cublasLtMatmulAlgoCheck(static_cast<cublasLtHandle_t>(handle), problem.operation(), problem.weight(), problem.x(),
                              problem.y(), problem.y(), &algorithm, &result);
  return status == CUBLAS_STATUS_SUCCESS && result.workspaceSize <= workspace ? 1 : 0;
}

int32_t run(void* handle, const GemmCall* call, Text* why) {
  constexpr float kOne = 1;
  const float kept = call->onto != 0 ? 1.0f : 0.0f;  // of y
  Problem problem;
  if (const cublasStatus_t status = problem.make(call->shape); status != CUBLAS_STATUS_SUCCESS) {
    return fail(why, "cublasLt descriptors", status);
  }
  const cublasLtMatmulAlgo_t algorithm = algorithm_of(*call->choice);
  const cublasStatus_t status =
      cublasLtMatmul(static_cast<cublasLtHandle_t>(handle), problem.operation(), &kOne, call->weight, problem.weight(),
                     call->x, problem.x(), &kept, call->y, problem.y(), call->y, problem.y(), &algorithm,
                     call->workspace, call->workspace_bytes, call->stream);
  return status == CUBLAS_STATUS_SUCCESS ? 0 : fail(why, "cublasLtMatmul", status);
}

constexpr GemmTable kTable{{kTableVersion, "cuBLASLt", loaded}, open, close, choose, fits, run};

}  // namespace
}  // namespace assay::cuda::vendor

extern "C" __attribute__((visibility("default"))) const assay::cuda::vendor::TableHead* assay_vendor_query() {
  return &assay::cuda::vendor::kTable.head;
}
