#include "backends/cuda/rotary_table.h"

#include <algorithm>

#include "backends/reference/arithmetic/precise.h"

namespace assay::cuda {

RotaryTable::RotaryTable(const model::ModelConfig& config) {
  if (config.positions != model::Positions::kRope) return;
  const auto rotated = static_cast<size_t>(config.kv_channels * config.rotary_percent);
  frequencies_ = arithmetic::inverse_frequencies(config.rotary_base, rotated);
}

void RotaryTable::cover(size_t positions, const Stream& stream) {
  if (half() == 0) return;
  const size_t known = host_.size() / (2 * half());
  if (positions <= known) return;
  constexpr size_t kAtLeast = 1024;  // so that decoding does not grow it at every token
  const size_t wanted = std::max(positions, known + kAtLeast);
  host_.resize(wanted * 2 * half());
  for (size_t p = known; p < wanted; ++p) {
    float* row = host_.data() + p * 2 * half();
    arithmetic::rotary_row(frequencies_, static_cast<uint32_t>(p), row, row + half());
  }
  stream.wait();
  device_ = upload(host_);
}

}  // namespace assay::cuda
