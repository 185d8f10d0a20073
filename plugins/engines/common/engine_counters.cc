#include "plugins/engines/common/engine_counters.h"

#include <nlohmann/json.hpp>

namespace assay::engines {

nlohmann::ordered_json to_json(const EngineCounters& counters) {
  return {{"batch", counters.batch},
          {"steps", counters.steps},
          {"chunks", counters.chunks},
          {"cached_tokens", counters.cached_tokens},
          {"recomputed_tokens", counters.recomputed_tokens},
          {"preemptions", counters.preemptions}};
}

}  // namespace assay::engines
