// Faults that are put into finished results.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "plugins/engines/common/engine_result.h"
#include "plugins/engines/common/text_codec.h"
#include "plugins/engines/faulty/fault.h"
#include "plugins/engines/faulty/places.h"

namespace assay::engines {

// What a request asked for.
struct Asked {
  int32_t new_tokens = 0;
  bool forced = false;  // its tokens were forced: they cannot be wrong
};

// What the faults may look at. Borrowed for a call.
struct Spoil {
  Fault fault = Fault::kNone;
  Places places = {};
  const TextCodec* codec = nullptr;
  const std::map<uint64_t, Asked>* asked = nullptr;  // by request id
  std::vector<const EngineResult*> originals = {};   // of all requests of the case, unspoiled
  uint64_t call = 1;                                 // counts the cases that this process answered
};

// Spoils one result in place and says where, e.g. "token 5"; nullopt and untouched where it offers no place.
using Spoiler = std::optional<std::string> (*)(EngineResult* result, const Spoil& spoil);

// Each null for a fault that is none of theirs.
Spoiler token_spoiler(Fault fault);
Spoiler text_spoiler(Fault fault);
Spoiler number_spoiler(Fault fault);

// True for faults that need all results of the case before the first may leave.
bool spoils_results(Fault fault);

// Spoils the FINISHED events of a case. With a seed one of the results that offer a place is struck,
// without one each of them; faults in the set of results take their fixed places. Returns where, a line each.
std::vector<std::string> spoil_results(const Spoil& spoil, std::vector<EngineEvent>* events);

}  // namespace assay::engines
