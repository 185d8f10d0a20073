// Options of the buffered engine.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "assay/status.h"
#include "plugins/engines/buffered/prefix_cache.h"

namespace assay::engines {

enum class ResultForm {
  kStatic,   // as the static script writes: no EOD, tpot
  kDynamic,  // as the dynamic script writes: the EOD stays; ttft, step_count ...
};

// Names are those of the JSON members. The member's argument of Megatron-LM stands in the schema's descriptions.
struct BufferedOptions {
  double buffer_size_gb = 40;           // GiB of keys and values
  std::optional<int64_t> block_count;   // blocks, instead of buffer_size_gb
  int32_t block_size = 256;             // tokens of a block
  std::optional<int64_t> max_requests;  // requests in one step; unset: as many as the buffer has blocks
  int32_t max_tokens = 16384;           // tokens in one step
  int32_t max_sequence_length = 0;  // tokens, prompt + new ones; 0: no limit but the buffer and the model's positions
  bool chunked_prefill = false;
  int32_t max_chunk = 0;  // tokens of a prompt in one step; 0: max_tokens alone limits them
  bool prefix_caching = false;
  Eviction eviction = Eviction::kRefZero;
  int32_t requests_per_step = 0;    // that arrive; 0: see requests_per_second
  double requests_per_second = -1;  // that arrive; 0 or less: all at once
  double virtual_step_seconds = 0;  // arrivals by a clock that a step moves so far; 0: by the host's clock
  int64_t seed = 1234;              // of arrivals
  std::vector<std::string> stop_words;
  std::optional<int64_t> termination_id;  // in place of the tokenizer's EOD; -1: none
  bool skip_prompt_logprobs = false;
  int32_t suspend_interval = 0;  // steps; 0: never
  ResultForm results = ResultForm::kStatic;
};

// JSON schema of what parse_buffered_options accepts.
extern const char* const kBufferedOptionsSchema;

// kInvalid naming the member for anything that the schema refuses, and for members that contradict each other.
Result<BufferedOptions> parse_buffered_options(std::string_view json);

// Limits of a buffer of `options` for a model of `model_config_json` ("{}": not known, then buffer_size_gb does not
// count).
struct BufferSize {
  uint64_t blocks = 0;        // at least 1, at most 2^31 - 1
  uint64_t block_bytes = 0;   // 0: not known
  uint64_t max_requests = 0;  // at least 1
};
// kInvalid when the buffer holds no block, or for a model that cannot be read.
Result<BufferSize> size_buffer(const BufferedOptions& options, std::string_view model_config_json);

}  // namespace assay::engines
