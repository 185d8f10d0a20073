// What Megatron-LM's test_optimizer_grads_match.py says of the optimizer states of two checkpoints, one after the
// other. It reshapes the right side alone, tells types apart and passes over embeddings that it cannot reshape: its
// verdict is none of ours. Pure.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "assay/compat.h"

namespace assay::train {

// One state of one checkpoint, row-major. What it refers to outlives the call.
struct CompatState {
  std::vector<int64_t> shape;
  std::string dtype;                             // torch's name: "float32"
  std::span<const float> values;                 // as many as the shape says
  const std::vector<int64_t>* weight = nullptr;  // shape of its checkpoint's tensor compat_weight(key); null: none
};

// The key of the weight that they look up for a state.
std::string compat_weight(std::string_view key);

// Judges one pair of checkpoints: compare() for each key of both, in ascending order, then verdict().
class CompatGradients {
 public:
  void compare(const std::string& key, const CompatState& left, const CompatState& right);

  // What makes their script fail whatever the tensors hold: "AssertionError: ...".
  void fail(const std::string& message);

  CompatVerdict verdict() const;

 private:
  std::string failure_;  // the first one; empty: none
  bool some_nonzero_ = false;
};

}  // namespace assay::train
