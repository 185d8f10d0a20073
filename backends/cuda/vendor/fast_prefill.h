// Option prefill=fast: dense layers by cuBLASLt and attention by cuDNN in passes over prompts. Everything else, and
// whatever these two cannot do, stays with the own kernels.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "backends/cuda/vendor/fast_attention.h"
#include "backends/cuda/vendor/fast_linear.h"
#include "backends/cuda/vendor/vendor_object.h"

namespace assay::cuda::vendor {

// Tokens that a run must have for these versions. Decided by the run alone, never by what else is in the pass: a run
// with fewer stays with the own kernels even where its pass has many tokens.
inline constexpr int kLeastTokens = 64;
// And for attention; below, gathering keys and values costs more than it saves.
inline constexpr int kLeastAttention = 512;

struct PrefillModel {
  bool bf16 = false;                  // arithmetic
  std::vector<Matrix> matrices = {};  // of dense layers
  AttentionShape heads = {};          // queries and keys are not looked at
  int most_tokens = 0;                // of one pass through the layers
};

class FastPrefill {
 public:
  // Whether open() would be refused for lack of a library; kUnsupported with the reason. Needs no device.
  static Status usable(bool bf16, const std::vector<std::filesystem::path>& folders = object_folders());

  // kUnsupported where it is not usable(): the option is refused. Without cuDNN, or where it has no plan,
  // attention is the own kernel's and a note says why. Takes about a second. Throws CudaError.
  static Result<std::unique_ptr<FastPrefill>> open(
      const PrefillModel& model, const std::vector<std::filesystem::path>& folders = object_folders());

  // Both compute their operator, or do nothing and return false. The pass must consist of runs of kLeastTokens and
  // more.
  bool linear(const LinearArgs& args, cudaStream_t stream) const;
  bool attend(const AttendArgs& args, const RunPlace& run, cudaStream_t stream);

  // What is used with which algorithms, memory and levels, one line each: for the model's notes.
  const std::vector<std::string>& notes() const { return notes_; }
  // A row of every product has the same bits whatever the number of tokens, seen at opening. Then a run has the same
  // bits beside any others: level L2 of runs, not of sequences, which engines cut into runs by what else there is.
  bool equal_rows() const { return equal_rows_; }
  uint64_t bytes() const;  // of device memory

 private:
  void describe(const std::string& no_attention);

  FastLinear linear_;
  std::optional<FastAttention> attention_;
  std::vector<std::string> notes_;
  bool equal_rows_ = true;
};

}  // namespace assay::cuda::vendor
