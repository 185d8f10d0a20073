// Which runs of a forward a fault of Family::kCondition strikes, and how.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "plugins/engines/faulty/faulty_backend.h"

namespace assay::engines {

enum class Harm : uint8_t {
  kLastBit,          // the logprobs of one output row become the next lower numbers
  kOtherKv,          // keys and values of one position become those of `id`
  kRepeatedToken,    // the last token is the one before it
  kEarlierPosition,  // tokens from `place` on are put one position too early
  kDraw,             // the random number of request `place`
  kRouting,          // one expert in the report of the run's token `place`
};

// One run that is struck.
struct Struck {
  size_t run = 0;
  Harm harm = Harm::kLastBit;
  size_t place = 0;  // kLastBit: row of the outputs; kRouting: token of the run; kDraw: prompt index; else: position
  int32_t id = 0;
};

// The one option of the engine inside that the fault makes it ignore; "" for other faults.
std::string_view ignored_option(Fault fault);

// Those for which the fault's condition holds and that have a place for it: with a seed, the one occasion of an
// engine's life that it chooses (faults that a seed gives no occasion: all); without, all. Runs are as they came.
std::vector<Struck> choose_struck(Passage* passage);

}  // namespace assay::engines
