// What the options and the buffer's size allow.
#pragma once

#include <cstddef>

#include "assay/plugin_abi.h"
#include "assay/status.h"
#include "plugins/engines/buffered/options.h"
#include "plugins/engines/buffered/scheduler.h"
#include "plugins/engines/common/request.h"

namespace assay::engines {

SchedulerLimits scheduler_limits(const BufferedOptions& options, const BufferSize& size);

// Positions that the request fills at most: N new tokens, of which the last is not fed back.
size_t positions_of(const Request& request);

// Why the request can never run, beyond what make_request checks: too long for the limit, the model's positions, the
// buffer or a step (kExhausted, with the numbers and the argument to raise); ok: it can.
Status fits(const Request& request, const BufferedOptions& options, const BufferSize& size,
            const assay_model_info& info);

}  // namespace assay::engines
