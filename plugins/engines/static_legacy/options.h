// Options of the static engine.
#pragma once

#include <cstdint>
#include <string_view>

#include "assay/status.h"

namespace assay::engines {

struct StaticOptions {
  int32_t max_requests = 8;            // --inference-max-requests: rows of a batch
  int32_t max_sequence_length = 2560;  // --inference-max-seq-length: tokens, prompt + generated
  int32_t block_size = 256;            // tokens of a KV block
};

// JSON schema of what parse_static_options accepts.
extern const char* const kStaticOptionsSchema;

// kInvalid naming the member for anything that the schema refuses.
Result<StaticOptions> parse_static_options(std::string_view json);

}  // namespace assay::engines
