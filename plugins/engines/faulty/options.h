// Options of engine faulty: those of the engine inside and its own.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "assay/status.h"
#include "plugins/engines/faulty/fault.h"

namespace assay::engines {

enum class Inner : uint8_t { kStatic, kBuffered };

struct FaultyOptions {
  Fault fault = Fault::kNone;
  Inner engine = Inner::kStatic;
  std::optional<uint64_t> seed;  // chooses the places; without one every request is struck
  bool seed_of_request = false;  // the seed is that of the first request's sampling
  std::string checkpoint;        // for faults that need a wrong model: what the case loads
  std::string backend_options;   // JSON object for the wrong model
  std::string rest;              // JSON object: options of the engine inside
};

// JSON schema: members of both engines that can be inside, `fault`, which has to be there ("none" is allowed), and the
// rest of the above. Its member "faults" is the table of faults: an array of {name, family, metric, verdicts, places,
// what}. `seed` is no entry of "properties" but of "patternProperties": who fills in what a case says has a seed of
// arrivals for a member of this name, and this one chooses places.
const std::string& faulty_options_schema();

// `options`, a JSON object, without member `name`: max_requests becomes 1, max_chunk goes with chunked_prefill.
std::string without_option(const std::string& options, std::string_view name);
// A boolean member of a JSON object; false where it is absent.
bool is_set(const std::string& options, const char* name);

// kInvalid naming the member for anything that the schema refuses; `rest` is left to the engine inside to check.
// Members that the other engine alone knows are left out of it, and so is a max_sequence_length of 0 ("no limit") that
// static_legacy does not know: a case is translated for both.
Result<FaultyOptions> parse_faulty_options(std::string_view json);

}  // namespace assay::engines
