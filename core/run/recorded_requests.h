// What an engine that replays is asked for.
#pragma once

#include <vector>

#include "assay/golden.h"
#include "core/run/worker_plan.h"

namespace assay::run {

// An order with order.recorded: asks for every request of that file, by the ids that the file has, and takes over the
// file's quantities, which belong to no request. Any other order stays as it is. Fails like read_results.
Result<CaseOrder> with_recorded_requests(CaseOrder order, std::vector<Quantity>* quantities);

}  // namespace assay::run
