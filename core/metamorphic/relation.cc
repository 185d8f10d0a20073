#include "core/metamorphic/relation.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "assay/plugin_abi.h"

namespace assay::metamorphic {
namespace {

constexpr std::array<RelationInfo, 12> kTable = {{
    {Relation::kSoloVsBatch, "solo_vs_batch", ASSAY_CAP_L2, "one request at a time", "many requests at once",
     "forwards held that many requests", "name smaller batches"},
    {Relation::kShuffledOrder, "shuffled_order", ASSAY_CAP_L2, "requests in their order", "the same in another order",
     "another request came first", ""},
    {Relation::kChangedNeighbours, "changed_neighbours", ASSAY_CAP_L2, "requests among some neighbours",
     "the same among others", "forwards held neighbours, and those differed", ""},
    {Relation::kRepeatedCall, "repeated_call", ASSAY_CAP_L1, "the first call of an engine",
     "the same call after other ones, with and without a reset", "the engine had answered other requests before", ""},
    {Relation::kPrefixCache, "prefix_cache", ASSAY_CAP_L3, "no prefix cache", "a prefix cache that holds the prompt",
     "tokens came from the cache", "raise prompt_tokens above a block of the cache (256 tokens)"},
    {Relation::kChunkedPrefill, "chunked_prefill", ASSAY_CAP_L3, "a prompt in one piece", "a prompt in chunks",
     "prompts took two chunks or more", "raise prompt_tokens or name smaller chunks"},
    {Relation::kPreemptResume, "preempt_resume", ASSAY_CAP_L3, "a cache with room for all",
     "a cache so small that requests are interrupted and computed again", "requests were preempted",
     "raise prompt_tokens or new_tokens"},
    {Relation::kStopContinue, "stop_continue", ASSAY_CAP_L3, "all tokens in one go",
     "half of them, then the rest from prompt and first half", "both halves gave tokens", "raise new_tokens"},
    {Relation::kStaticVsBuffered, "static_vs_buffered", ASSAY_CAP_L3, "the engine under test",
     "the other of static_legacy and buffered", "the results came from two engines", ""},
    {Relation::kPrefillVsDecode, "prefill_vs_decode", ASSAY_CAP_L3, "logprobs of tokens as they were generated",
     "logprobs of the same tokens as part of the prompt", "tokens were decoded one by one", "raise new_tokens"},
    {Relation::kThreadCount, "thread_count", ASSAY_CAP_L1, "a backend of one thread", "a backend of several",
     "the device said so", "name other threads"},
    {Relation::kSaveLoad, "save_load", ASSAY_CAP_L1, "the checkpoint of the case",
     "the same weights, written anew and loaded again", "the weights came from the new files", ""},
}};

}  // namespace

std::span<const RelationInfo> relation_table() { return kTable; }

const RelationInfo& info_of(Relation relation) { return kTable.at(static_cast<size_t>(relation)); }

std::optional<Relation> parse_relation(std::string_view name) {
  const auto found = std::find_if(kTable.begin(), kTable.end(), [&](const RelationInfo& i) { return i.name == name; });
  if (found == kTable.end()) return std::nullopt;
  return found->relation;
}

Status check(const Parameters& parameters) {
  for (const auto& [name, values] :
       {std::pair("batches", &parameters.batches), {"chunks", &parameters.chunks}, {"threads", &parameters.threads}}) {
    if (values->empty()) return invalid(fmt::format("metamorphic {}: the list is empty; name a number", name));
    for (const int32_t value : *values) {
      if (value < 1) return invalid(fmt::format("metamorphic {}: {}, expected 1 or more", name, value));
    }
  }
  if (parameters.prompt_tokens < 2) {
    return invalid(fmt::format("metamorphic prompt_tokens: {}, expected 2 or more", parameters.prompt_tokens));
  }
  if (parameters.new_tokens < 2) {
    return invalid(fmt::format("metamorphic new_tokens: {}, expected 2 or more", parameters.new_tokens));
  }
  return {};
}

}  // namespace assay::metamorphic
