// Checkpoint arguments: from Megatron's pickled common state to an ArgRecord.
#pragma once

#include <string>

#include "assay/status.h"
#include "backends/model/args_record.h"
#include "backends/model/checkpoint/pickle_reader.h"

namespace assay::model {

// `pickle` is a dict with the key 'args' (common.pt), or a list that holds one such dict (common_state). A dict without
// 'args' gives an empty record. Values: see ArgValue; enum members, dtypes, dicts, sets and bytes become Opaque.
// kInvalid, naming `name`, when the common state is no dict or 'args' is no namespace.
Result<ArgRecord> import_args(const Pickle& pickle, const std::string& name);

}  // namespace assay::model
