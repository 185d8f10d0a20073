// What `assay show --checkpoint DIR` prints.
#pragma once

#include <string>

#include "assay/status.h"
#include "backends/model/checkpoint/checkpoint.h"

namespace assay::model {

// A table of the tensors (key, shape, dtype, chunks, bytes), objects counted, totals, and a summary of the arguments.
// Ends with a newline. Fails when the arguments cannot be read.
Result<std::string> render_checkpoint_text(const Checkpoint& checkpoint);

// One JSON object: path, iteration, format, files [{name}], tensors [{key, shape, dtype, chunks, bytes, files}],
// objects
// [{key, bytes}], total {tensors, parameters, bytes}, args {name: value}.
Result<std::string> render_checkpoint_json(const Checkpoint& checkpoint);

}  // namespace assay::model
