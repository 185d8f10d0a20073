// Did what a relation is about happen? Told by what the engine says of its requests.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "core/metamorphic/way.h"

namespace assay::metamorphic {

struct Seen {
  bool fired = false;
  std::string what;  // "256 tokens came from the cache", with what was expected where it did not fire
};

using Check = std::function<Seen(const WayResult& reference, const WayResult& changed)>;

enum class Counter { kBatch, kChunks, kCachedTokens, kPreemptions };

// How a counter is read over requests.
enum class Over { kLargest, kEach, kSum };

struct Bound {
  Counter counter = Counter::kBatch;
  Over over = Over::kLargest;
  uint64_t least = 0;
  uint64_t most = UINT64_MAX;
};

// Looks at the counters of `ids` in the changed way; an engine that tells none, or not of one of them, does not fire.
Check counters_within(const Bound& bound, std::vector<std::string> ids);

// Both fire. What was seen is joined.
Check both(Check first, Check second);

// Requests that are not judged were answered before; at least one of them gave tokens.
Check others_were_answered(std::vector<std::string> others);
// Requests of `ids` were together in forwards, and ended at different steps of the engine.
Check ended_at_unlike_steps(const std::vector<std::string>& ids);
// The first ask of the way is another than that of the reference.
Check another_came_first(const Way& reference, const Way& changed);
Check two_engines();
Check device_says(int32_t threads);
Check other_files();
// `id` + `suffix` continues `id`: one pair at least of which both have tokens.
Check both_halves_gave_tokens(std::vector<std::string> ids, std::string suffix);
// One of `ids` at least has two tokens in the reference, and all of them stand in its prompt in the changed way.
Check decoded_tokens_became_prompt(std::vector<std::string> ids);

}  // namespace assay::metamorphic
