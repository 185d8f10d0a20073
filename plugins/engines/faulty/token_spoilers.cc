// Faults in the tokens of a result. Forced tokens are the host's: they are left alone.
#include <algorithm>

#include "plugins/engines/faulty/edit_result.h"
#include "plugins/engines/faulty/spoil.h"

namespace assay::engines {
namespace {

using Where = std::optional<std::string>;

std::string token_at(size_t index) { return "token " + std::to_string(index); }

// A token of this request that is not `other`; nullopt where all are alike.
std::optional<int32_t> another_token(const EngineResult& result, int32_t other, size_t choice) {
  std::vector<int32_t> ids = result.prompt_ids;
  ids.insert(ids.end(), result.tokens.begin(), result.tokens.end());
  std::erase(ids, other);
  if (ids.empty()) return std::nullopt;
  return ids[choice % ids.size()];
}

Where drop(EngineResult* result, const Spoil& spoil) {
  if (result->tokens.size() < 2) return std::nullopt;
  const size_t index = spoil.places.pick(result->tokens.size());
  erase_token(result, index);
  decode_again(result, *spoil.codec);
  return token_at(index);
}

Where duplicate(EngineResult* result, const Spoil& spoil) {
  if (result->tokens.empty()) return std::nullopt;
  const size_t index = spoil.places.pick(result->tokens.size());
  insert_token(result, index, result->tokens[index], index);
  decode_again(result, *spoil.codec);
  return token_at(index);
}

Where swap_neighbours(EngineResult* result, const Spoil& spoil) {
  std::vector<size_t> unlike;
  for (size_t i = 1; i < result->tokens.size(); ++i) {
    if (result->tokens[i - 1] != result->tokens[i]) unlike.push_back(i - 1);
  }
  if (unlike.empty()) return std::nullopt;
  const size_t index = unlike[spoil.places.pick(unlike.size())];
  std::swap(result->tokens[index], result->tokens[index + 1]);
  decode_again(result, *spoil.codec);
  return token_at(index);
}

Where replace(EngineResult* result, const Spoil& spoil, size_t index, size_t choice) {
  const std::optional<int32_t> token = another_token(*result, result->tokens[index], choice);
  if (!token) return std::nullopt;
  result->tokens[index] = *token;
  decode_again(result, *spoil.codec);
  return token_at(index) + " is " + std::to_string(*token);
}

Where wrong_last(EngineResult* result, const Spoil& spoil) {
  if (result->tokens.empty()) return std::nullopt;
  return replace(result, spoil, result->tokens.size() - 1,
                 spoil.places.pick(result->prompt_ids.size() + result->tokens.size()));
}

Where unstable(EngineResult* result, const Spoil& spoil) {
  if (result->tokens.empty() || spoil.call % 2 == 0) return std::nullopt;
  return replace(result, spoil, spoil.places.pick(result->tokens.size()), 0);
}

Where stop_early(EngineResult* result, const Spoil& spoil) {
  if (result->tokens.size() < 2) return std::nullopt;
  const size_t kept = 1 + spoil.places.pick(result->tokens.size() - 1);
  keep_tokens(result, kept);
  decode_again(result, *spoil.codec);
  return std::to_string(kept) + " tokens kept";
}

Where run_on(EngineResult* result, const Spoil& spoil) {
  if (result->tokens.empty()) return std::nullopt;
  const size_t size = result->tokens.size();
  const size_t more = 1 + spoil.places.pick(4);
  for (size_t i = 0; i < more; ++i) insert_token(result, result->tokens.size(), result->tokens[i % size], size - 1);
  decode_again(result, *spoil.codec);
  return std::to_string(more) + " tokens more";
}

Where keep_eod(EngineResult* result, const Spoil& spoil) {
  const auto asked = spoil.asked->find(result->id);
  const std::optional<int32_t> eod = spoil.codec->eod();
  if (!eod || result->tokens.empty() || asked == spoil.asked->end()) return std::nullopt;
  if (result->tokens.size() >= static_cast<size_t>(asked->second.new_tokens)) return std::nullopt;
  const size_t last = result->tokens.size() - 1;
  const size_t times = spoil.places.seeded() ? 1 + spoil.places.pick(4) : 1;
  for (size_t i = 0; i < times; ++i) insert_token(result, result->tokens.size(), *eod, last);
  return std::to_string(times) + " times";
}

Where one_character(EngineResult* result, const Spoil& /*spoil*/) {
  if (result->tokens.size() < 2 || !result->text || result->text->size() < 2) return std::nullopt;
  keep_tokens(result, 1);
  result->text->resize(1);
  return "";
}

Where empty(EngineResult* result, const Spoil& /*spoil*/) {
  if (result->tokens.empty()) return std::nullopt;
  keep_tokens(result, 0);
  result->text = "";
  return "";
}

Where other_output(EngineResult* result, const Spoil& spoil) {
  std::vector<const EngineResult*> others;
  for (const EngineResult* other : spoil.originals) {
    if (other->id != result->id && other->tokens != result->tokens) others.push_back(other);
  }
  if (others.empty()) return std::nullopt;
  const EngineResult& other = *others[spoil.places.pick(others.size())];
  result->tokens = other.tokens;
  result->text = other.text;
  result->generated_logprobs = other.generated_logprobs;
  result->generated_ranks = other.generated_ranks;
  result->generated_logits = other.generated_logits;
  result->generated_top_n = other.generated_top_n;
  result->tpot = other.tpot;
  fit_routing(result);
  return "of request " + std::to_string(other.id);
}

Spoiler find(Fault fault) {
  switch (fault) {
    case Fault::kDroppedToken:
      return drop;
    case Fault::kDuplicatedToken:
      return duplicate;
    case Fault::kSwappedTokens:
      return swap_neighbours;
    case Fault::kWrongLastToken:
      return wrong_last;
    case Fault::kEarlyStop:
      return stop_early;
    case Fault::kRunsOn:
      return run_on;
    case Fault::kEodKept:
      return keep_eod;
    case Fault::kOneCharacter:
      return one_character;
    case Fault::kEmptyOutput:
      return empty;
    case Fault::kOtherOutput:
      return other_output;
    case Fault::kUnstableToken:
      return unstable;
    default:
      return nullptr;
  }
}

}  // namespace

Spoiler token_spoiler(Fault fault) { return find(fault); }

}  // namespace assay::engines
