// Metamorphic relations: two ways of running the same requests that must give the same results. No golden is needed.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "assay/status.h"

namespace assay::metamorphic {

enum class Relation : uint8_t {
  kSoloVsBatch,
  kShuffledOrder,
  kChangedNeighbours,
  kRepeatedCall,
  kPrefixCache,
  kChunkedPrefill,
  kPreemptResume,
  kStopContinue,
  kStaticVsBuffered,
  kPrefillVsDecode,
  kThreadCount,
  kSaveLoad,
};

struct RelationInfo {
  Relation relation;
  std::string_view name;       // "prefix_cache": in ASSAY.metamorphic, and after the case's name: "moe/x@prefix_cache"
  uint64_t level;              // ASSAY_CAP_L1 to L3: who claims it must give equal bits
  std::string_view reference;  // "no prefix cache"
  std::string_view changed;    // "prefix cache, filled by an earlier request"
  std::string_view mechanism;  // what must have happened: "tokens were taken from the cache"
  std::string_view remedy;  // what to change in ASSAY.metamorphic where it did not happen; empty: nothing there helps
};

std::span<const RelationInfo> relation_table();  // in the order of the enumeration
const RelationInfo& info_of(Relation relation);
std::optional<Relation> parse_relation(std::string_view name);

// What a case may choose (ASSAY.metamorphic).
struct Parameters {
  std::vector<int32_t> batches = {1, 2, 3, 7, 8, 16, 33};  // requests at once, each >= 1
  std::vector<int32_t> chunks = {1, 7, 255, 256, 257};     // tokens, each >= 1
  int32_t prompt_tokens = 513;               // of the longest, at least 2; shorter ones of a case are repeated up to it
  int32_t new_tokens = 8;                    // of each request, at least 2
  std::vector<int32_t> threads = {1, 2, 3};  // of the backend, each >= 1
};

// kInvalid naming what is outside of the above, or a list that is empty.
Status check(const Parameters& parameters);

}  // namespace assay::metamorphic
