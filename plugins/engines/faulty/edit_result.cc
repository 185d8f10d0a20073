#include "plugins/engines/faulty/edit_result.h"

#include <algorithm>
#include <numeric>

namespace assay::engines {
namespace {

template <class T>
void erase_at(std::vector<T>* values, size_t index) {
  if (index < values->size()) values->erase(values->begin() + static_cast<ptrdiff_t>(index));
}

template <class T>
void copy_to(std::vector<T>* values, size_t index, size_t from) {
  if (from >= values->size() || index > values->size()) return;
  const T value = (*values)[from];
  values->insert(values->begin() + static_cast<ptrdiff_t>(index), value);
}

void erase_position(CandidateLists* lists, size_t position) {
  if (position >= lists->counts.size()) return;
  const size_t first = first_entry(*lists, position);
  for (uint32_t i = 0; i < lists->counts[position]; ++i) {
    erase_at(&lists->ids, first);
    erase_at(&lists->logprobs, first);
    erase_at(&lists->texts, first);
  }
  erase_at(&lists->counts, position);
}

void copy_position(CandidateLists* lists, size_t position, size_t from) {
  if (from >= lists->counts.size()) return;
  const size_t source = first_entry(*lists, from);
  const size_t target = first_entry(*lists, position);
  const uint32_t count = lists->counts[from];
  const CandidateLists before = *lists;
  const auto copy = [&](auto* values, const auto& old) {
    values->insert(values->begin() + static_cast<ptrdiff_t>(target), old.begin() + static_cast<ptrdiff_t>(source),
                   old.begin() + static_cast<ptrdiff_t>(source + count));
  };
  copy(&lists->ids, before.ids);
  copy(&lists->logprobs, before.logprobs);
  copy(&lists->texts, before.texts);
  lists->counts.insert(lists->counts.begin() + static_cast<ptrdiff_t>(position), count);
}

}  // namespace

void fit_routing(EngineResult* result) {
  if (result->routing.empty()) return;
  const size_t wanted = result->prompt_ids.size() + result->tokens.size() - 1;
  result->routing.resize(wanted * result->moe_layers * result->moe_topk, 0);
  if (!result->routing_margins.empty()) result->routing_margins.resize(wanted * result->moe_layers, 0);
  result->routing_tokens = wanted;
}

size_t first_entry(const CandidateLists& lists, size_t position) {
  return std::accumulate(lists.counts.begin(), lists.counts.begin() + static_cast<ptrdiff_t>(position), size_t{0});
}

void erase_token(EngineResult* result, size_t index) {
  erase_at(&result->tokens, index);
  erase_at(&result->generated_logprobs, index);
  erase_at(&result->generated_ranks, index);
  erase_at(&result->generated_logits, index);
  erase_at(&result->tpot, index);
  erase_position(&result->generated_top_n, index);
  fit_routing(result);
}

void insert_token(EngineResult* result, size_t index, int32_t token, size_t from) {
  result->tokens.insert(result->tokens.begin() + static_cast<ptrdiff_t>(index), token);
  copy_to(&result->generated_logprobs, index, from);
  copy_to(&result->generated_ranks, index, from);
  copy_to(&result->generated_logits, index, from);
  copy_to(&result->tpot, index, from);
  copy_position(&result->generated_top_n, index, from);
  fit_routing(result);
}

void keep_tokens(EngineResult* result, size_t count) {
  while (result->tokens.size() > count) erase_token(result, result->tokens.size() - 1);
}

void decode_again(EngineResult* result, const TextCodec& codec) {
  std::vector<int32_t> all = result->prompt_ids;
  all.insert(all.end(), result->tokens.begin(), result->tokens.end());
  if (const auto generated = codec.generated(result->prompt.value_or(""), all)) result->text = generated->text;
}

}  // namespace assay::engines
