// Arguments whose value changes what a model computes in a way that we do not.
#pragma once

#include "assay/status.h"
#include "backends/model/args_record.h"
#include "backends/model/config/effective_args.h"

namespace assay::model {

// kUnsupported naming argument, value, where the value comes from and what is supported. For properties of the
// architecture the checkpoint's own value counts where nothing is given, even if it would not be restored: the run
// would be wrong without a sign. `checkpoint` may be null.
Status check_supported(const EffectiveArgs& args, const ArgRecord* checkpoint);

}  // namespace assay::model
