// Requests that go through the model in lockstep.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "assay/status.h"
#include "plugins/engines/common/engine_border.h"
#include "plugins/engines/common/engine_result.h"
#include "plugins/engines/common/sequence.h"
#include "plugins/engines/static_legacy/device.h"

namespace assay::engines {

// P_i: prompt tokens of row i. N and sampling are those of the first request.
// The first forward takes min P tokens of every prompt; each later one takes one token a row: the token just generated,
// or the next of a longer prompt. A row that is done leaves the forward; rows do not influence each other (DESIGN 9).
// Where a row wants logits beside outputs of its prompt, the first forward leaves the last prompt token to the second
// one: full logits are then held for one position a row, never for a whole prompt.
// Not thread-safe.
class Batch {
 public:
  // requests: 1 .. max_requests, none refused. kExhausted naming the lengths when max P + N is over
  // max_sequence_length or more positions than the model has are needed; then nothing may be run.
  static Status fits(const std::vector<Request>& requests, const assay_model_info& info, int32_t max_sequence_length);

  Batch(std::vector<Request> requests, const Device& device, std::optional<int32_t> eod);

  // One forward, the engine's `step`th. Appends a TOKEN event for every new token that counts. Fails as the backend
  // does; the batch is then not to be stepped again.
  Status step(Device* device, const Host& host, uint64_t step, std::vector<EngineEvent>* events);

  bool done() const;
  // Takes a row out before its end; false when no row that still runs has this id.
  bool cancel(uint64_t id);

  // Rows in submission order without the cancelled ones.
  std::vector<Sequence>& rows() { return rows_; }
  const std::vector<Sequence>& rows() const { return rows_; }

 private:
  std::vector<Sequence> rows_;
  size_t start_ = 0;  // positions before it went through the model
  size_t end_ = 0;    // positions of the coming forward: start_ .. end_ - 1
};

}  // namespace assay::engines
