// What an engine says happened to a request: metamorphic relations ask whether their mechanism was at work.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>

namespace assay::engines {

struct EngineCounters {
  uint64_t batch = 0;              // most requests in one forward with this one, itself included
  uint64_t steps = 0;              // forwards of the engine, since it was opened or reset, up to the request's last one
  uint64_t chunks = 0;             // runs over its prompt or a part of it, and those that went over positions again
  uint64_t cached_tokens = 0;      // positions taken from the prefix cache
  uint64_t recomputed_tokens = 0;  // positions that went through the model more than once
  uint64_t preemptions = 0;

  // One more forward with the request, of `requests`.
  void saw_batch(uint64_t requests) { batch = batch > requests ? batch : requests; }
};

// The member "engine_counters" of assay_result.extra: an object with the names above.
nlohmann::ordered_json to_json(const EngineCounters& counters);

}  // namespace assay::engines
