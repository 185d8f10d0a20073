#include "plugins/engines/buffered/limits.h"

#include <string>

namespace assay::engines {

size_t positions_of(const Request& request) {
  return request.prompt_ids.size() + static_cast<size_t>(request.max_new_tokens) - 1;
}

SchedulerLimits scheduler_limits(const BufferedOptions& options, const BufferSize& size) {
  return {.block_size = static_cast<size_t>(options.block_size),
          .max_requests = size.max_requests,
          .max_tokens = static_cast<size_t>(options.max_tokens),
          .chunked_prefill = options.chunked_prefill,
          .max_chunk = static_cast<size_t>(options.max_chunk),
          .prefix_caching = options.prefix_caching,
          .eviction = options.eviction};
}

Status fits(const Request& request, const BufferedOptions& options, const BufferSize& size,
            const assay_model_info& info) {
  const size_t prompt = request.prompt_ids.size();
  const size_t total = prompt + static_cast<size_t>(request.max_new_tokens);
  const std::string sum = "prompt of " + std::to_string(prompt) + " + " + std::to_string(request.max_new_tokens) +
                          " new tokens = " + std::to_string(total);
  if (options.max_sequence_length > 0 && total > static_cast<size_t>(options.max_sequence_length)) {
    return exhausted(sum + " is over the limit of " + std::to_string(options.max_sequence_length) +
                     " tokens; raise --inference-max-seq-length");
  }
  const int32_t positions = info.max_positions;
  if (positions > 0 && total > static_cast<size_t>(positions) + 1) {
    return exhausted(sum + " needs " + std::to_string(total - 1) + " positions, the model has " +
                     std::to_string(positions) + "; generate fewer tokens");
  }
  const size_t block_size = static_cast<size_t>(options.block_size);
  const size_t blocks = (positions_of(request) + block_size - 1) / block_size;
  if (blocks > size.blocks) {
    return exhausted(sum + " needs " + std::to_string(blocks) + " blocks of " + std::to_string(options.block_size) +
                     " tokens, the KV buffer holds " + std::to_string(size.blocks) +
                     "; raise --inference-dynamic-batching-buffer-size-gb");
  }
  if (!options.chunked_prefill && prompt > static_cast<size_t>(options.max_tokens)) {
    return exhausted("prompt of " + std::to_string(prompt) + " tokens is over the " +
                     std::to_string(options.max_tokens) +
                     " of a step; raise --inference-dynamic-batching-max-tokens or give --enable-chunked-prefill");
  }
  return {};
}

}  // namespace assay::engines
