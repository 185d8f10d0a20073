#include "plugins/engines/static_legacy/options.h"

#include "plugins/engines/common/options_json.h"

namespace assay::engines {

const char* const kStaticOptionsSchema = R"json({
  "$schema": "https://json-schema.org/draft/2020-12/schema",
  "type": "object",
  "additionalProperties": false,
  "properties": {
    "max_requests": {"type": "integer", "minimum": 1, "maximum": 65536, "default": 8,
      "description": "rows of a batch (--inference-max-requests)"},
    "max_sequence_length": {"type": "integer", "minimum": 1, "maximum": 16777216, "default": 2560,
      "description": "limit of longest prompt + new tokens of a batch (--inference-max-seq-length)"},
    "block_size": {"type": "integer", "minimum": 1, "maximum": 65536, "default": 256,
      "description": "tokens of a block of the KV cache; does not change results"}
  }
})json";

Result<StaticOptions> parse_static_options(std::string_view json) {
  StaticOptions options;
  OptionsReader reader(json, "options of engine static_legacy");
  reader.integer("max_requests", 1, 65536, &options.max_requests);
  reader.integer("max_sequence_length", 1, 16777216, &options.max_sequence_length);
  reader.integer("block_size", 1, 65536, &options.block_size);
  if (Status status = reader.finish(); !status.ok()) return status;
  return options;
}

}  // namespace assay::engines
