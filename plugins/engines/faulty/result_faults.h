// Faults that are put into finished results.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "plugins/engines/common/engine_result.h"
#include "plugins/engines/faulty/fault.h"

namespace assay::engines {

// Spoils one result in place: kEodKept, kWrongLogprob, kNanLogprob, kTruncatedText; others leave it alone.
// new_tokens: what was asked for, to tell an early end from a full one; eod: the tokenizer's.
void spoil_result(Fault fault, int32_t new_tokens, std::optional<int32_t> eod, EngineResult* result);

// Exchanges the ids of the first two FINISHED events; fewer: does nothing.
void swap_first_two(std::vector<EngineEvent>* events);

}  // namespace assay::engines
