// One request while it runs: what goes through the model for it, and what comes of that.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "assay/plugin_abi.h"
#include "plugins/engines/common/engine_counters.h"
#include "plugins/engines/common/engine_result.h"
#include "plugins/engines/common/request.h"

namespace assay::engines {

// What the engine decides for a sequence.
struct SequenceSetting {
  int32_t new_tokens = 0;           // N: at most so many are generated
  assay_sampling sampling{};        // prompt_index is taken from the request
  std::optional<int32_t> eod;       // ends the sequence
  bool keep_eod = false;            // the EOD is the last generated token, with its logprob; else it is dropped
  bool skip_prompt = false;         // logprobs and top-n lists are those of generated tokens alone
  std::span<const int32_t> blocks;  // covers the positions of each run
  // End the sequence where its generated tokens end with one; the match is dropped. Outlives the sequence; null: none.
  const std::vector<std::vector<int32_t>>* stop_words = nullptr;
  size_t moe_layers = 0;
  size_t moe_topk = 0;
  size_t vocab_size = 0;
};

// Goes through next, forward, absorb until done. P prompt tokens, G generated tokens. Not thread-safe.
// Positions may be run again (their keys and values were given up): their outputs were taken the first time, and are
// not asked for again.
class Sequence {
 public:
  Sequence(Request request, const SequenceSetting& setting);

  const Request& request() const { return request_; }
  // Nothing left to compute: N tokens, an EOD, a stop word, or cancelled.
  bool done() const { return done_; }
  void cancel() { done_ = true; }

  // Positions that have to go through the model before the sequence is at its limit.
  size_t needed() const;
  // Prompt and generated tokens. The last one has not gone through the model yet.
  std::span<const int32_t> tokens() const { return tokens_; }
  size_t prompt_size() const { return request_.prompt_ids.size(); }
  // Outputs of every prompt position are wanted: none may be left out of the runs.
  bool wants_prompt() const;

  // Leading positions that may be in the cache already when it begins to run: with the outputs of them taken, or, where
  // nobody wants these, all but the last two (the ancestor computes two tokens at least).
  size_t skippable() const;

  // Another block table, valid until the next one.
  void set_blocks(std::span<const int32_t> blocks) { setting_.blocks = blocks; }

  // Last position + 1 of a run from `start` that should end at `end`: full logits are held for one position at a time,
  // so that a run which gives the next token may have to leave it to another one.
  size_t cut(size_t start, size_t end) const;

  // The sequence's part of a forward over positions [start, end): fewer where it needs or has fewer. Positions before
  // `start` are in the cache. Pointers in it stay valid until absorb. Where logits are wanted, `end` obeys `cut`.
  assay_run next(size_t start, size_t end);
  // Where the run that `next` gave wants its routing margins: (count, moe_layers); null: not wanted. Valid until
  // absorb.
  float* margins() { return request_.want_routing ? out_.margins.data() : nullptr; }

  // Takes the outputs of the run that `next` gave; `seconds`: how long the forward took. Returns the new token, if
  // there is one that counts.
  std::optional<int32_t> absorb(double seconds);
  // The sequence was ready, but a forward of `seconds` went without it.
  void wait(double seconds) { waited_ += seconds; }

  // What happened to it. `absorb` counts chunks and recomputed tokens; the rest is the engine's.
  EngineCounters& counters() { return counters_; }
  const EngineCounters& counters() const { return counters_; }

  // All but id, texts, latency and extra. Ends the sequence.
  EngineResult take_result();

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

  size_t generated() const { return tokens_.size() - prompt_size(); }
  bool forced() const { return generated() < request_.forced.size(); }
  // Rows of outputs that a run of [start, stop) owes, one for each of its last positions.
  size_t rows_of(size_t start, size_t stop) const;
  void want_rows(size_t start, assay_run* run);
  void take_logprobs();
  void take_top_n();
  void take_routing();
  void take_logit(int32_t token);
  // Drops the stop word at the end, if there is one.
  bool stopped();

  Request request_;
  SequenceSetting setting_;
  std::vector<int32_t> tokens_;  // (P + G)
  bool done_ = false;
  size_t recorded_ = 0;  // positions before it have given their outputs
  EngineCounters counters_;

  // Of the run in flight.
  size_t start_ = 0;
  size_t count_ = 0;
  size_t output_rows_ = 0;
  bool draws_ = false;  // the run ends at the last known token: a new one follows
  Outputs out_;

  std::vector<double> logprobs_;      // (P - 1 + G) nats; without the prompt's part with skip_prompt
  std::vector<int32_t> top_ids_;      // (positions, top_n)
  std::vector<double> top_logprobs_;  // (positions, top_n) nats
  std::vector<uint16_t> routing_;     // (positions, moe_layers, moe_topk)
  std::vector<float> margins_;        // (positions, moe_layers)
  std::vector<double> logits_;        // (G) raw
  std::vector<int32_t> ranks_;        // (G)
  std::vector<double> tpot_;          // (G) seconds
  double waited_ = 0;                 // seconds since the last token
  size_t prefill_tokens_ = 0;
  double prefill_seconds_ = 0;
  double decode_seconds_ = 0;
};

}  // namespace assay::engines
