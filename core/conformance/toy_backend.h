// Test double of a backend. Logits are a hash of the token sequence that the block table finds in the cache, so that
// any stale, misplaced or missing entry changes every later token. It checks its caller: runs that break the contract
// of assay_forward are refused with kInvalid.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "assay/plugin_abi.h"
#include "assay/status.h"

namespace assay::engines {

// One forward as the toy saw it.
struct ToyForward {
  std::vector<uint32_t> starts;       // (runs)
  std::vector<uint32_t> counts;       // (runs)
  std::vector<uint32_t> output_rows;  // (runs)
};

// The `model` handle of toy_backend(). Owned by the test; not thread-safe.
struct ToyModel {
  int32_t vocab_size = 64;
  int32_t moe_layers = 0;
  int32_t moe_topk = 0;
  int32_t max_positions = 0;
  // The token with the largest logit after `sequence`; -1 leaves it to the hash. Null: always the hash.
  std::function<int32_t(std::span<const int32_t> sequence)> prefers;
  bool writes_margins = false;  // as a backend of ABI 1.1 does
  size_t fail_at = SIZE_MAX;    // index of the forward that fails with `failure`
  Status failure = infra("toy device is gone");
  uint64_t forward_ns = 1000;  // what a forward adds to now_ns, times its index + 1

  uint64_t now_ns = 0;
  std::vector<ToyForward> forwards;
  int caches = 0;                       // open ones
  uint32_t memory_blocks = UINT32_MAX;  // larger caches are refused as kExhausted
};

const assay_backend_table* toy_backend();

// What the toy answers after `sequence`: (vocab_size) logits. For tests that compute the expected values themselves.
std::vector<double> toy_logits(const ToyModel& model, std::span<const int32_t> sequence);
// log-softmax of toy_logits at `token`, nats.
double toy_logprob(const ToyModel& model, std::span<const int32_t> sequence, int32_t token);
// The first largest logit.
int32_t toy_argmax(const ToyModel& model, std::span<const int32_t> sequence);
// (moe_layers, moe_topk) experts of the last token of `sequence`.
std::vector<uint16_t> toy_routing(const ToyModel& model, std::span<const int32_t> sequence);
// (moe_layers) margins of the router for the last token of `sequence`.
std::vector<float> toy_margins(const ToyModel& model, std::span<const int32_t> sequence);

}  // namespace assay::engines
