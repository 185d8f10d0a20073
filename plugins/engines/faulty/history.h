// What an engine was asked and answered so far, for faults that strike later requests because of earlier ones.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "plugins/engines/common/engine_result.h"
#include "plugins/engines/faulty/watched.h"

namespace assay::engines {

// Not thread-safe.
class History {
 public:
  // A request comes. `idle`: nothing was pending, so that it begins a call.
  Watched asked(uint64_t prompt_index, std::span<const int32_t> prompt, bool idle);
  void answered(const EngineResult& result);
  // The engine was reset. What came before is not forgotten: that is the fault.
  void reset();

 private:
  static constexpr size_t kMostAnswers = 256;  // the latest ones

  std::vector<std::vector<int32_t>> answers_;  // prompt and generated tokens
  std::vector<int32_t> this_call_;             // prompt of the latest request
  std::vector<int32_t> before_;                // of the last request of the call before
  bool after_reset_ = false;
  size_t calls_ = 0;
};

}  // namespace assay::engines
