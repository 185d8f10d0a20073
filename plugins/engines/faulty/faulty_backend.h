// A backend table in front of another one: lies about positions, or leaves old KV behind.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "assay/plugin_abi.h"
#include "plugins/engines/faulty/fault.h"

namespace assay::engines {

// The `model` handle of a faulty table: the real one, and what the fault needs to know. Caches are the real ones.
struct FaultyModel {
  const assay_backend_table* backend = nullptr;
  void* model = nullptr;
  Fault fault = Fault::kNone;
  std::map<int32_t, std::vector<int32_t>> last_prefill;  // first block of a row -> ids of its first run
};

// `real` with model_info, make_cache, forward and wait taking a FaultyModel. They pass everything on, except for
//  - kStaleKv: after the first run of a sequence, the ids that began the previous sequence of that row are put through
//    the model over the same positions, as if the row had not been written again;
//  - kOffByOnePosition: single-token runs start one position early.
assay_backend_table faulty_backend(const assay_backend_table& real);

}  // namespace assay::engines
