// Dense linear layers by cuBLASLt: the algorithm of a shape is chosen once, at opening, and computes any number of
// tokens.
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "backends/cuda/kernels/linear.h"
#include "backends/cuda/runtime/buffer.h"
#include "backends/cuda/runtime/stream.h"
#include "backends/cuda/vendor/vendor_table.h"

namespace assay::cuda::vendor {

// What was chosen for the matrices of one shape.
struct GemmPlan {
  int rows = 0;
  int cols = 0;  // a multiple of 16: the copies are padded with zeros
  GemmChoice choice = {};
  bool rows_equal = false;  // a row has the same bits whatever the number of tokens (row_equality.h)
};

class FastLinear {
 public:
  // Copies `matrices` (tiled bf16; each once, however often it is named) row-major to memory of its own and chooses an
  // algorithm a shape, for up to `most_tokens` tokens: the first that the library proposes and that fits every number
  // of tokens, one with equal rows before one without. Matrices of shapes that the library cannot do are left out.
  // kUnsupported without cuBLASLt, kExhausted without memory. Throws CudaError.
  static Result<FastLinear> open(const std::vector<std::filesystem::path>& folders, const std::vector<Matrix>& matrices,
                                 int most_tokens);

  // Computes the layer, or returns false and leaves it to the own kernels: not one of the matrices, experts, fp32.
  // bf16 inputs, as linear(); the result differs from linear()'s by rounding. Throws CudaError.
  bool run(const LinearArgs& args, cudaStream_t stream) const;

  const std::vector<GemmPlan>& plans() const { return plans_; }
  uint64_t bytes() const { return copies_.size() + workspace_.size(); }
  std::string version() const;  // "cuBLASLt 13.1.0"

 private:
  struct Copy {
    const void* data = nullptr;
    size_t plan = 0;
  };
  Status add_plan(const Matrix& matrix, const void* copy, int most_tokens);

  const GemmTable* table_ = nullptr;
  std::unique_ptr<void, void (*)(void*)> handle_{nullptr, nullptr};
  DeviceBuffer<std::byte> copies_;
  DeviceBuffer<std::byte> workspace_;
  std::vector<GemmPlan> plans_;
  std::map<const void*, Copy> copy_of_;  // by the tiled matrix's data
};

}  // namespace assay::cuda::vendor
