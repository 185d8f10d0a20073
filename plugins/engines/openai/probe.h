// What a server can do, found out by asking it.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "assay/status.h"
#include "plugins/engines/openai/wire.h"

namespace assay::engines::openai {

struct Found {
  std::string model;                             // to be named in requests
  Answering answering;                           // what answers may call it
  bool logprobs = false;                         // of generated tokens
  IdForm ids = IdForm::kNone;                    // of generated tokens, where a server gives them
  int32_t most_top_n = 0;                        // alternatives of a token
  PromptLogprobs prompt = PromptLogprobs::kOff;  // kEcho or kList where that works
  bool seed = false;
  std::string seed_broken;                   // a seed is not kept to: what was seen; "": not seen
  std::string stop_broken;                   // stop words are not kept to: what was seen; "": not seen
  uint64_t capabilities = 0;                 // ASSAY_CAP_*
  std::map<std::string, std::string> facts;  // one line each, for the provenance of results
};

// Sends about fifteen small requests. What the server lacks, refuses or only pretends to do is in `facts`, under the
// name of the capability. Fails where no request at all can be trusted: nobody answers (kInfra), the model is not there
// (kNotFound), the plainest answer is wrong or the prompt begins with its first token twice (kInvalid), HTTP 5xx
// (kInternal), the run is to stop (kCancelled).
Result<Found> probe(Wire& wire, const OpenaiOptions& options);

}  // namespace assay::engines::openai
