// The options of the CUDA backend.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "assay/status.h"

namespace assay::cuda {

// None but `weights` and prefill=fast changes a bit of a result.
struct ModelOptions {
  int threads = 1;                      // of the host, that load the weights: 1 .. 16
  size_t slice = 0;                     // most tokens of one pass through the layers: 1 .. 4096; 0: as many as fit
  bool plain_decode = false;            // decode=plain: the kernels of any batch even where faster ones fit
  bool fast_prefill = false;            // prefill=fast: the vendor's libraries
  std::optional<uint64_t> random = {};  // weights=random[:SEED]: no checkpoint is read; the seed
};

// JSON schema of the object that parse_model_options() takes.
inline constexpr const char* kModelOptionsSchema =
    R"({"type":"object","properties":{"threads":{"type":"integer","minimum":0,"maximum":16},)"
    R"("slice":{"type":"integer","minimum":1,"maximum":4096},)"
    R"("decode":{"enum":["auto","plain"]},"prefill":{"enum":["exact","fast"]},)"
    R"("weights":{"type":"string","pattern":"^(checkpoint|random(:[0-9]+)?)$"}},)"
    R"("additionalProperties":false})";

// A JSON object with any of the members "threads" (0, the default: one a core, at most 16), "slice" (unset: as many as
// the memory of the device allows), "decode" (auto, plain), "prefill" (exact, fast), "weights" (checkpoint, random,
// random:SEED). kInvalid with the member, its value and what is expected.
Result<ModelOptions> parse_model_options(std::string_view json);

}  // namespace assay::cuda
