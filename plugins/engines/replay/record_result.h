// From a recorded request to the result of an engine: the inverse of record_of (assay/golden.h).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "assay/golden.h"
#include "assay/status.h"
#include "plugins/engines/common/engine_result.h"

namespace assay::engines {

// What the result cannot say of the record is in `notes`, one line each: logprobs without tokens (nothing tells where
// the prompt's end), a further field that is no JSON (a bare NaN). Routing positions travel in `extra`.
// kInvalid: fewer logprobs than tokens, or generated logprobs in another number than tokens.
Result<EngineResult> result_of(const RequestRecord& record, uint64_t id, std::vector<std::string>* notes);

}  // namespace assay::engines
