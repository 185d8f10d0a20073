// A finished request with everything that it owns: the C++ side of assay_result.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "assay/plugin_abi.h"
#include "assay/status.h"

namespace assay::engines {

// Top-n lists of consecutive positions, flattened; entries of one position by descending logprob.
struct CandidateLists {
  std::vector<int32_t> ids;                       // -1 where only the text is known
  std::vector<double> logprobs;                   // (ids.size()) nats
  std::vector<std::optional<std::string>> texts;  // (ids.size()) of that token alone; nullopt: it has none
  std::vector<uint32_t> counts;                   // (positions); sum = ids.size()
};

// P prompt tokens, G generated tokens. Optional and empty members travel as null.
struct EngineResult {
  uint64_t id = 0;
  std::optional<std::string> prompt;
  std::optional<std::string> text;         // generated
  std::vector<int32_t> prompt_ids;         // (P)
  std::vector<int32_t> tokens;             // (G)
  std::vector<double> prompt_logprobs;     // (P - 1) nats, or empty
  std::vector<double> generated_logprobs;  // (G) nats, or empty
  CandidateLists prompt_top_n;             // (P - 1) positions, or none
  CandidateLists generated_top_n;          // (G) positions, or none
  std::vector<double> tpot;                // (G) seconds; [0] holds the prefill
  double latency = 0;                      // seconds
  std::vector<uint16_t> routing;           // (routing_tokens, moe_layers, moe_topk)
  size_t routing_tokens = 0;
  size_t moe_layers = 0;
  size_t moe_topk = 0;
  std::vector<float> routing_margins;    // (routing_tokens, moe_layers) as assay_forward says, or empty
  std::vector<int32_t> generated_ranks;  // (G) 0 = largest logit, or empty
  std::vector<double> generated_logits;  // (G) raw, or empty
  uint64_t prefill_tokens = 0;           // prompt tokens computed
  double prefill_seconds = 0;
  double decode_seconds = 0;
  std::string extra;  // JSON object, or empty
};

struct EngineEvent {
  assay_event_kind kind = ASSAY_EVENT_TOKEN;
  uint64_t id = 0;                       // request
  int32_t token = -1;                    // TOKEN
  Status failure;                        // FAILED
  std::unique_ptr<EngineResult> result;  // FINISHED
};

inline EngineEvent token_event(uint64_t id, int32_t token) {
  EngineEvent event;
  event.id = id;
  event.token = token;
  return event;
}
EngineEvent finished_event(EngineResult result);
EngineEvent failed_event(uint64_t id, Status failure);

}  // namespace assay::engines
