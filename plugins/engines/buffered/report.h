// What a result says beside the values that every engine gives.
#pragma once

#include <cstdint>

#include "plugins/engines/buffered/active.h"
#include "plugins/engines/buffered/options.h"
#include "plugins/engines/common/engine_result.h"

namespace assay::engines {

// Sets latency and extra. extra holds, in both forms, `engine_counters`; in the dynamic form also `ttft` (seconds, null
// without a token), `step_count` and `cuda_graph_request_count_map` (empty: there are no graphs), and no tpot.
// `finished_ns`: clock of Active::arrived_ns.
void add_report(const Active& request, uint64_t finished_ns, ResultForm form, EngineResult* result);

}  // namespace assay::engines
