// Dense linear layers by cuBLASLt: the algorithms of a shape are chosen once, at opening.
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "backends/cuda/kernels/linear.h"
#include "backends/cuda/runtime/buffer.h"
#include "backends/cuda/runtime/stream.h"
#include "backends/cuda/vendor/vendor_table.h"

namespace assay::cuda::vendor {

// What was chosen for the matrices of one shape: an algorithm for up to so many tokens, and so on. There are several
// only where all of them were seen to give the same bits.
struct GemmPlan {
  struct Range {
    int tokens = 0;  // at most; the last range has no end
    GemmChoice choice = {};
  };
  int rows = 0;
  int cols = 0;  // a multiple of 16: the copies are padded with zeros
  std::vector<Range> ranges = {};
  bool rows_equal = false;  // a row has the same bits whatever the number of tokens (row_equality.h)

  const GemmChoice& choice(int tokens) const;
  std::string text() const;  // "6144 x 2048: 66.18.35.7.3 to 128 tokens, 66.20.35.3.1 to 4096 tokens"
};

class FastLinear {
 public:
  // Copies `matrices` (tiled bf16; each once, however often it is named) row-major to memory of its own and chooses the
  // algorithms of each shape for up to `most_tokens` tokens, by the library's heuristics alone, so that the same device
  // and library always get the same: one for each range of tokens where rows are equal throughout, else one for all,
  // the first with equal rows, else the first. Matrices of shapes that the library cannot do are left out.
  // kUnsupported without cuBLASLt, kExhausted without memory. Throws CudaError.
  static Result<FastLinear> open(const std::vector<std::filesystem::path>& folders, const std::vector<Matrix>& matrices,
                                 int most_tokens);

  // Computes the layer, or returns false and leaves it to the own kernels: not one of the matrices, experts, fp32,
  // a bias before the residual.
  // bf16 inputs, as linear(); the result differs from linear()'s by rounding. Throws CudaError.
  bool run(const LinearArgs& args, cudaStream_t stream) const;

  const std::vector<GemmPlan>& plans() const { return plans_; }
  // Shapes of matrices that stay with the own kernels: "62 x 128".
  const std::set<std::string>& left_out() const { return left_out_; }
  uint64_t bytes() const { return copies_.size() + workspace_.size(); }
  std::string version() const;  // "cuBLASLt 13.1.0"

 private:
  struct Copy {
    const void* data = nullptr;
    size_t plan = 0;
  };
  void run_call(GemmCall call) const;  // with the workspace
  Status add_plan(const Matrix& matrix, const void* copy, int most_tokens);
  Result<std::vector<GemmChoice>> choices(const GemmShape& shape) const;
  bool fits(const GemmPlan& plan, const GemmChoice& choice, int tokens) const;
  bool rows_equal(const GemmPlan& plan, const void* copy, int tested) const;
  Status choose_ranges(GemmPlan& plan, int tested, int most_tokens) const;
  Status choose_one(GemmPlan& plan, const void* copy, int tested, int most_tokens) const;

  const GemmTable* table_ = nullptr;
  std::unique_ptr<void, void (*)(void*)> handle_{nullptr, nullptr};
  DeviceBuffer<std::byte> copies_;
  DeviceBuffer<std::byte> workspace_;
  std::vector<GemmPlan> plans_;
  std::set<std::string> left_out_;
  std::map<const void*, Copy> copy_of_;  // by the tiled matrix's data
};

}  // namespace assay::cuda::vendor
