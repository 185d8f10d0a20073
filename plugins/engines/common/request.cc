#include "plugins/engines/common/request.h"

#include <cmath>
#include <span>
#include <utility>

#include "assay/sdk.hpp"

namespace assay::engines {
namespace {

Status check_ids(std::span<const int32_t> ids, const char* what, int32_t vocab_size) {
  for (size_t i = 0; i < ids.size(); ++i) {
    if (ids[i] >= 0 && ids[i] < vocab_size) continue;
    return invalid(std::string(what) + " " + std::to_string(i) + " is id " + std::to_string(ids[i]) +
                   ", the model's vocabulary is 0 .. " + std::to_string(vocab_size - 1) +
                   "; tokenizer and checkpoint do not belong together");
  }
  return {};
}

Status check(const Request& request, const assay_model_info& info, int32_t max_sequence_length) {
  if (request.prompt_ids.empty()) return invalid("prompt has no tokens; at least one is needed to generate from");
  const size_t limit = static_cast<size_t>(max_sequence_length);
  if (request.prompt_ids.size() > limit) {
    return invalid("prompt of " + std::to_string(request.prompt_ids.size()) + " tokens is longer than the limit of " +
                   std::to_string(limit) + "; raise --inference-max-seq-length");
  }
  if (request.max_new_tokens < 0) {
    return invalid("max_new_tokens is " + std::to_string(request.max_new_tokens) + ", expected 0 or more");
  }
  if (request.top_n < 0 || request.top_n > info.vocab_size) {
    return invalid("top_n is " + std::to_string(request.top_n) + ", expected 0 .. " + std::to_string(info.vocab_size) +
                   " (the vocabulary)");
  }
  if (Status status = check_ids(request.prompt_ids, "prompt token", info.vocab_size); !status.ok()) return status;
  if (Status status = check_ids(request.forced, "forced token", info.vocab_size); !status.ok()) return status;
  return check_sampling(request.sampling, info.vocab_size);
}

Status take_prompt(const assay_request& from, const TextCodec& codec, Request* request) {
  if (from.ids.data != nullptr) {
    request->prompt_ids.assign(from.ids.data, from.ids.data + from.ids.size);
    request->prompt = codec.decode(request->prompt_ids);
    return {};
  }
  request->prompt = std::string(sdk::text(from.text));
  Result<std::vector<int32_t>> ids = codec.encode(*request->prompt);
  if (!ids) return ids.status().with("prompt");
  request->prompt_ids = *std::move(ids);
  if (const std::optional<std::string> name = codec.unknown_special(*request->prompt)) {
    return invalid("prompt names the special token " + *name +
                   ", which the tokenizer does not have; correct it or raise --tiktoken-num-special-tokens");
  }
  return {};
}

}  // namespace

Request make_request(const assay_request& from, const TextCodec& codec, const assay_model_info& info,
                     int32_t max_sequence_length) {
  Request request;
  request.id = from.id;
  request.max_new_tokens = from.max_new_tokens;
  request.top_n = from.top_n;
  request.want_logprobs = (from.want & ASSAY_WANT_LOGPROBS) != 0;
  request.want_routing = (from.want & ASSAY_WANT_ROUTING) != 0 && info.moe_layers > 0 && info.moe_topk > 0;
  request.want_logits = (from.want & ASSAY_WANT_LOGITS) != 0;
  request.sampling = from.sampling;
  if (from.forced.size > 0) request.forced.assign(from.forced.data, from.forced.data + from.forced.size);
  request.refusal = take_prompt(from, codec, &request);
  if (request.refusal.ok()) request.refusal = check(request, info, max_sequence_length);
  return request;
}

Status check_sampling(const assay_sampling& sampling, int32_t vocab_size) {
  if (sampling.top_k < 0 || sampling.top_k > vocab_size) {
    return invalid("top_k is " + std::to_string(sampling.top_k) + ", expected 0 .. " + std::to_string(vocab_size));
  }
  if (!(sampling.top_p >= 0 && sampling.top_p <= 1)) {
    return invalid("top_p is " + std::to_string(sampling.top_p) + ", expected 0 .. 1");
  }
  if (sampling.top_k > 0 && sampling.top_p > 0) {
    return invalid("top_k is " + std::to_string(sampling.top_k) + " and top_p is " + std::to_string(sampling.top_p) +
                   "; only one of them may be set, put 0 for the other");
  }
  if (!(sampling.temperature > 0) || std::isinf(sampling.temperature)) {
    return invalid("temperature is " + std::to_string(sampling.temperature) +
                   ", expected a finite number above 0; top_k 1 is greedy");
  }
  return {};
}

}  // namespace assay::engines
