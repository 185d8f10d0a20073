// Options of engine faulty: those of static_legacy and its own.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "assay/status.h"
#include "plugins/engines/faulty/fault.h"

namespace assay::engines {

struct FaultyOptions {
  Fault fault = Fault::kNone;
  std::optional<uint64_t> seed;  // chooses the places; without one every request is struck
  bool seed_of_request = false;  // the seed is that of the first request's sampling
  std::string checkpoint;        // for faults that need a wrong model: what the case loads
  std::string backend_options;   // JSON object for the wrong model
  std::string rest;              // JSON object: options of static_legacy
};

// JSON schema: that of static_legacy, `fault`, which has to be there ("none" is allowed), and the rest of the above.
// Its member "faults" is the table of faults: an array of {name, family, metric, verdicts, places, what}.
const std::string& faulty_options_schema();

// kInvalid naming the member for anything that the schema refuses; `rest` is left to static_legacy to check.
Result<FaultyOptions> parse_faulty_options(std::string_view json);

}  // namespace assay::engines
