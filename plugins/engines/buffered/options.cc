#include "plugins/engines/buffered/options.h"

#include <algorithm>
#include <cmath>

#include "backends/model/config/model_config.h"
#include "plugins/engines/common/options_json.h"

namespace assay::engines {

const char* const kBufferedOptionsSchema = R"json({
  "$schema": "https://json-schema.org/draft/2020-12/schema",
  "type": "object",
  "additionalProperties": false,
  "properties": {
    "buffer_size_gb": {"type": "number", "exclusiveMinimum": 0, "maximum": 1048576, "default": 40,
      "description": "GiB of the KV buffer (--inference-dynamic-batching-buffer-size-gb)"},
    "block_count": {"type": "integer", "minimum": 1, "maximum": 2147483647,
      "description": "blocks of the KV buffer, instead of buffer_size_gb"},
    "block_size": {"type": "integer", "minimum": 1, "maximum": 65536, "default": 256,
      "description": "tokens of a block (--inference-dynamic-batching-block-size); does not change results"},
    "max_requests": {"type": "integer", "minimum": 1, "maximum": 2147483647,
      "description": "requests in one step (--inference-dynamic-batching-max-requests, --inference-max-requests); default: from the blocks"},
    "max_tokens": {"type": "integer", "minimum": 1, "maximum": 2147483647, "default": 16384,
      "description": "tokens in one step (--inference-dynamic-batching-max-tokens)"},
    "max_sequence_length": {"type": "integer", "minimum": 0, "maximum": 2147483647, "default": 0,
      "description": "limit of prompt + new tokens (--inference-max-seq-length); 0: none"},
    "chunked_prefill": {"type": "boolean", "default": false,
      "description": "prompts are split over steps (--enable-chunked-prefill)"},
    "max_chunk": {"type": "integer", "minimum": 0, "maximum": 2147483647, "default": 0,
      "description": "most tokens of a prompt in one step, with chunked_prefill; 0: max_tokens alone"},
    "prefix_caching": {"type": "boolean", "default": false,
      "description": "blocks of equal prefixes are shared (--inference-dynamic-batching-prefix-caching)"},
    "prefix_caching_eviction_policy": {"enum": ["ref_zero", "lru"], "default": "ref_zero",
      "description": "when a shared block is forgotten (--inference-dynamic-batching-prefix-caching-eviction-policy)"},
    "requests_per_step": {"type": "integer", "minimum": 0, "maximum": 2147483647, "default": 0,
      "description": "requests that arrive at each step (--incoming-requests-per-step); 0: see requests_per_second"},
    "requests_per_second": {"type": "number", "maximum": 1e9, "default": -1,
      "description": "mean rate of arrivals (--incoming-requests-per-sec); 0 or less: all at once"},
    "virtual_step_seconds": {"type": "number", "minimum": 0, "maximum": 1e6, "default": 0,
      "description": "arrivals by a clock that each step moves so far; 0: by the machine's clock"},
    "seed": {"type": "integer", "minimum": 0, "default": 1234, "description": "of arrivals (--seed)"},
    "stop_words": {"type": "array", "items": {"type": "string"}, "default": [],
      "description": "end a request and are dropped from its tokens (--stop-words)"},
    "termination_id": {"type": "integer", "minimum": -1, "maximum": 2147483647,
      "description": "ends a request (--termination-id); -1: nothing does; default: the tokenizer's EOD"},
    "skip_prompt_logprobs": {"type": "boolean", "default": false,
      "description": "logprobs and top-n of generated tokens alone (--skip-prompt-log-probs); lets them use the prefix cache"},
    "suspend_interval": {"type": "integer", "minimum": 0, "maximum": 2147483647, "default": 0,
      "description": "steps after which all requests give up their blocks and go on by computing again (--suspend-resume-interval with --rl-kv-cache-management-mode recompute); 0: never"},
    "results": {"enum": ["static", "dynamic"], "default": "static",
      "description": "form of the results: that of the static or of the dynamic script"}
  }
})json";

namespace {

constexpr const char* kWhat = "options of engine buffered";

Status check(const BufferedOptions& o) {
  if (o.max_chunk > 0 && !o.chunked_prefill) {
    return invalid(std::string(kWhat) + ": max_chunk is " + std::to_string(o.max_chunk) +
                   " without chunked_prefill; set chunked_prefill true");
  }
  if (o.max_requests && *o.max_requests > o.max_tokens) {
    return invalid(std::string(kWhat) + ": max_requests " + std::to_string(*o.max_requests) + " is above max_tokens " +
                   std::to_string(o.max_tokens) + ", but each running request needs a token of every step");
  }
  return {};
}

}  // namespace

Result<BufferedOptions> parse_buffered_options(std::string_view json) {
  BufferedOptions o;
  std::string eviction = "ref_zero";
  std::string results = "static";
  std::optional<int64_t> seed;
  OptionsReader reader(json, kWhat);
  reader.number("buffer_size_gb", {.above = 0, .most = 1048576}, &o.buffer_size_gb);
  reader.integer("block_count", 1, INT32_MAX, &o.block_count);
  reader.integer("block_size", 1, 65536, &o.block_size);
  reader.integer("max_requests", 1, INT32_MAX, &o.max_requests);
  reader.integer("max_tokens", 1, INT32_MAX, &o.max_tokens);
  reader.integer("max_sequence_length", 0, INT32_MAX, &o.max_sequence_length);
  reader.boolean("chunked_prefill", &o.chunked_prefill);
  reader.integer("max_chunk", 0, INT32_MAX, &o.max_chunk);
  reader.boolean("prefix_caching", &o.prefix_caching);
  reader.choice("prefix_caching_eviction_policy", {"ref_zero", "lru"}, &eviction);
  reader.integer("requests_per_step", 0, INT32_MAX, &o.requests_per_step);
  reader.number("requests_per_second", {.most = 1e9}, &o.requests_per_second);
  reader.number("virtual_step_seconds", {.least = 0, .most = 1e6}, &o.virtual_step_seconds);
  reader.integer("seed", 0, INT64_MAX, &seed);
  reader.strings("stop_words", &o.stop_words);
  reader.integer("termination_id", -1, INT32_MAX, &o.termination_id);
  reader.boolean("skip_prompt_logprobs", &o.skip_prompt_logprobs);
  reader.integer("suspend_interval", 0, INT32_MAX, &o.suspend_interval);
  reader.choice("results", {"static", "dynamic"}, &results);
  if (Status status = reader.finish(); !status.ok()) return status;
  o.eviction = eviction == "lru" ? Eviction::kLru : Eviction::kRefZero;
  o.results = results == "dynamic" ? ResultForm::kDynamic : ResultForm::kStatic;
  if (seed) o.seed = *seed;
  if (Status status = check(o); !status.ok()) return status;
  return o;
}

Result<BufferSize> size_buffer(const BufferedOptions& options, std::string_view model_config_json) {
  BufferSize size;
  uint64_t blocks = INT32_MAX;
  if (!model_config_json.empty() && model_config_json != "{}") {
    const Result<model::ModelConfig> config = model::parse_model_config(std::string(model_config_json));
    if (!config) return config.status().with("engine buffered");
    const uint64_t number = config->arithmetic == model::Arithmetic::kBf16 ? 2 : 4;  // bytes
    size.block_bytes = number * 2 * static_cast<uint64_t>(config->num_layers) *
                       static_cast<uint64_t>(config->num_query_groups) * static_cast<uint64_t>(config->kv_channels) *
                       static_cast<uint64_t>(options.block_size);
    const double whole = std::floor(options.buffer_size_gb * 0x1p30 / static_cast<double>(size.block_bytes));
    blocks = static_cast<uint64_t>(std::min(whole, static_cast<double>(INT32_MAX)));
    if (blocks == 0 && !options.block_count) {
      return invalid(std::string(kWhat) + ": buffer_size_gb " + std::to_string(options.buffer_size_gb) +
                     " is less than one block of " + std::to_string(options.block_size) + " tokens, " +
                     std::to_string(size.block_bytes) +
                     " bytes; raise --inference-dynamic-batching-buffer-size-gb or lower the block size");
    }
  }
  size.blocks = options.block_count ? static_cast<uint64_t>(*options.block_count) : blocks;
  const uint64_t from_blocks = size.blocks > 4 ? (size.blocks - 1) / 4 * 4 : size.blocks;
  size.max_requests = options.max_requests ? static_cast<uint64_t>(*options.max_requests)
                                           : std::min(from_blocks, static_cast<uint64_t>(options.max_tokens));
  return size;
}

}  // namespace assay::engines
