// One request while its batch runs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "assay/plugin_abi.h"
#include "plugins/engines/common/engine_result.h"
#include "plugins/engines/static_legacy/request.h"

namespace assay::engines {

// What a row shares with its batch.
struct RowSetting {
  int32_t new_tokens = 0;           // N of the batch
  assay_sampling sampling{};        // of the batch; prompt_index is the row's own
  std::optional<int32_t> eod;       // ends a row
  std::span<const int32_t> blocks;  // covers P + N tokens
  size_t moe_layers = 0;
  size_t moe_topk = 0;
  size_t vocab_size = 0;
};

// Goes through next, forward, absorb until done. P prompt tokens, G generated tokens without the EOD. Not thread-safe.
class Row {
 public:
  Row(Request request, const RowSetting& setting);

  const Request& request() const { return request_; }
  // Nothing left to compute: N tokens, an EOD, or cancelled.
  bool done() const { return done_; }
  void cancel() { done_ = true; }

  // The row's part of a forward over positions [start, end): fewer where the row needs fewer. Positions before `start`
  // went through earlier calls. Pointers in it stay valid until absorb.
  // A row that wants logits must get them for one position at a time: see Batch.
  assay_run next(size_t start, size_t end);
  // Where the run that `next` gave wants its routing margins: (count, moe_layers); null: not wanted. Valid until
  // absorb.
  float* margins() { return request_.want_routing ? out_.margins.data() : nullptr; }

  // Takes the outputs of the run that `next` gave; `seconds`: how long the forward took. Returns the new token, if
  // there is one that counts.
  std::optional<int32_t> absorb(double seconds);

  // All but id, texts and latency. Ends the row.
  EngineResult take_result();

  // Prompt and generated tokens.
  std::span<const int32_t> tokens() const { return tokens_; }

 private:
  // Outputs of one forward. R rows of outputs.
  struct Outputs {
    std::vector<int32_t> targets;        // (R)
    std::vector<float> target_logprobs;  // (R) nats
    std::vector<int32_t> top_ids;        // (R, top_n)
    std::vector<float> top_logprobs;     // (R, top_n) nats
    int32_t sampled = -1;
    float sampled_logprob = 0;      // nats
    std::vector<uint16_t> routing;  // (count, moe_layers, moe_topk)
    std::vector<float> margins;     // (count, moe_layers)
    std::vector<float> logits;      // (vocab_size) of the last position
  };

  size_t prompt_size() const { return request_.prompt_ids.size(); }
  size_t generated() const { return tokens_.size() - prompt_size(); }
  size_t needed() const;  // positions that have to go through the model
  bool forced() const { return generated() < request_.forced.size(); }
  void take_logprobs();
  void take_top_n();
  void take_logit(int32_t token);

  Request request_;
  RowSetting setting_;
  std::vector<int32_t> tokens_;  // (P + G)
  bool done_ = false;

  // Of the run in flight.
  size_t start_ = 0;
  size_t count_ = 0;
  size_t output_rows_ = 0;
  bool draws_ = false;  // the run ends at the last known token: a new one follows
  Outputs out_;

  std::vector<double> logprobs_;      // (P - 1 + G) nats
  std::vector<int32_t> top_ids_;      // (positions, top_n)
  std::vector<double> top_logprobs_;  // (positions, top_n) nats
  std::vector<uint16_t> routing_;     // (positions, moe_layers, moe_topk)
  std::vector<float> margins_;        // (positions, moe_layers)
  std::vector<double> logits_;        // (G) raw
  std::vector<int32_t> ranks_;        // (G)
  std::vector<double> tpot_;          // (G) seconds
  double waited_ = 0;                 // seconds since the last token
  double prefill_seconds_ = 0;
  double decode_seconds_ = 0;
};

}  // namespace assay::engines
