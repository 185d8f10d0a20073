// A submitted request, owned.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "assay/plugin_abi.h"
#include "assay/status.h"
#include "plugins/engines/common/text_codec.h"

namespace assay::engines {

struct Request {
  uint64_t id = 0;
  std::optional<std::string> prompt;  // as submitted, or decoded from the ids; nullopt: ids without a tokenizer
  std::vector<int32_t> prompt_ids;    // (P)
  std::vector<int32_t> forced;        // generated token i is forced[i]
  int32_t max_new_tokens = 0;
  int32_t top_n = 0;
  bool want_logprobs = false;
  bool want_routing = false;
  bool want_logits = false;  // raw logit and rank of every generated token
  assay_sampling sampling{};
  Status refusal;  // why it cannot run; ok: it can
};

// Copies and checks. A request that cannot run comes back with `refusal` set, one line without its id: nothing to
// generate from, text that cannot be encoded, ids outside of the vocabulary of the model, sampling that no rule covers,
// a prompt longer than `max_sequence_length`.
Request make_request(const assay_request& request, const TextCodec& codec, const assay_model_info& info,
                     int32_t max_sequence_length);

// temperature > 0, top_k in 0 .. vocabulary, top_p in 0 .. 1, not both top_k and top_p.
Status check_sampling(const assay_sampling& sampling, int32_t vocab_size);

}  // namespace assay::engines
