// What a result says beside the values that every engine gives.
#pragma once

#include <cstdint>

#include "plugins/engines/buffered/active.h"
#include "plugins/engines/buffered/options.h"
#include "plugins/engines/common/engine_result.h"

namespace assay::engines {

struct ReportTimes {
  uint64_t finished_ns = 0;  // clock of Active::arrived_ns
  uint64_t steps = 0;        // of the engine up to and with the one that ended the request
};

// Sets latency and extra. extra holds, in both forms, `engine_counters`: {"steps", "chunks", "cached_tokens",
// "recomputed_tokens", "preemptions"}; in the dynamic form also `ttft` (seconds, null without a token), `step_count`
// and `cuda_graph_request_count_map` (empty: there are no graphs), and no tpot.
void add_report(const Active& request, const ReportTimes& times, ResultForm form, EngineResult* result);

}  // namespace assay::engines
