// Faults in the numbers of a result: logprobs, top-n lists, routing.
#include <algorithm>
#include <cmath>
#include <limits>
#include <span>
#include <utility>

#include "plugins/engines/faulty/edit_result.h"
#include "plugins/engines/faulty/rounding.h"
#include "plugins/engines/faulty/spoil.h"

namespace assay::engines {
namespace {

using Where = std::optional<std::string>;

std::string at(size_t index) { return "token " + std::to_string(index); }

template <class Change>
Where change_one(EngineResult* result, const Spoil& spoil, Change change) {
  std::vector<double>& logprobs = result->generated_logprobs;
  if (logprobs.empty()) return std::nullopt;
  const size_t index = spoil.places.pick(logprobs.size());
  change(logprobs[index]);
  return at(index);
}

Where wrong(EngineResult* result, const Spoil& spoil) {
  return change_one(result, spoil, [](double& logprob) { logprob -= 0.5; });
}
Where not_a_number(EngineResult* result, const Spoil& spoil) {
  return change_one(result, spoil, [](double& logprob) { logprob = std::numeric_limits<double>::quiet_NaN(); });
}
Where infinite(EngineResult* result, const Spoil& spoil) {
  return change_one(result, spoil, [](double& logprob) { logprob = std::numeric_limits<double>::infinity(); });
}
Where unstable(EngineResult* result, const Spoil& spoil) {
  return spoil.call % 2 == 1 ? wrong(result, spoil) : std::nullopt;
}

Where shift(EngineResult* result, const Spoil& spoil) {
  const size_t prompt = result->prompt_logprobs.size();
  std::vector<double> all = result->prompt_logprobs;
  all.insert(all.end(), result->generated_logprobs.begin(), result->generated_logprobs.end());
  if (all.size() < 2) return std::nullopt;
  const bool late = spoil.places.pick(2) == 1;
  std::rotate(all.begin(), late ? all.end() - 1 : all.begin() + 1, all.end());
  std::copy_n(all.begin(), prompt, result->prompt_logprobs.begin());
  std::copy(all.begin() + static_cast<ptrdiff_t>(prompt), all.end(), result->generated_logprobs.begin());
  return late ? "one late" : "one early";
}

Where drop_prompt(EngineResult* result, const Spoil& /*spoil*/) {
  if (result->prompt_logprobs.empty()) return std::nullopt;
  result->prompt_logprobs.clear();
  return "";
}

// Rounds all logprobs. A request offers a place where that moves a logprob by more than every tolerance allows: an
// engine that keeps logprobs in a narrow type but within tolerance is not wrong.
template <class Round>
Where round_all(EngineResult* result, Round round) {
  constexpr double kVisible = 1.1e-3;  // nats; the default tolerance is 1e-3
  EngineResult rounded = *result;
  double most = 0;
  for (std::vector<double>* list : {&rounded.prompt_logprobs, &rounded.generated_logprobs}) {
    for (double& logprob : *list) {
      const double before = std::exchange(logprob, round(logprob));
      most = std::max(most, std::fabs(before - logprob));
    }
  }
  if (!(most > kVisible)) return std::nullopt;
  *result = std::move(rounded);
  return "by up to " + std::to_string(most) + " nats";
}
// Towards zero where the seed says so, or where rounding to nearest shows nothing.
Where round_logprobs(EngineResult* result, const Spoil& spoil, int bits) {
  const bool truncates = spoil.places.seeded() && spoil.places.pick(2) == 1;
  const auto nearest = [bits](double x) { return round_mantissa(x, bits); };
  const Where where = truncates ? std::nullopt : round_all(result, nearest);
  if (where) return *where + " to nearest";
  return round_all(result, [bits](double x) { return truncate_mantissa(x, bits); });
}
Where round_fp16(EngineResult* result, const Spoil& spoil) { return round_logprobs(result, spoil, 11); }
Where round_bf16(EngineResult* result, const Spoil& spoil) { return round_logprobs(result, spoil, 8); }
// As an engine does that keeps probabilities and takes their logarithm later.
Where round_probabilities(EngineResult* result, const Spoil& /*spoil*/) {
  return round_all(result, [](double x) { return std::log(round_mantissa(std::exp(x), 8)); });
}

// A position whose list has at least two entries with unlike logprobs; nullopt: there is none.
std::optional<size_t> list_position(const CandidateLists& lists, const Places& places) {
  std::vector<size_t> good;
  for (size_t position = 0, first = 0; position < lists.counts.size(); first += lists.counts[position++]) {
    if (lists.counts[position] >= 2 && lists.logprobs[first] != lists.logprobs[first + 1]) good.push_back(position);
  }
  if (good.empty()) return std::nullopt;
  return good[places.pick(good.size())];
}

Where reorder_list(EngineResult* result, const Spoil& spoil) {
  CandidateLists& lists = result->generated_top_n;
  const std::optional<size_t> position = list_position(lists, spoil.places);
  if (!position) return std::nullopt;
  const size_t first = first_entry(lists, *position);
  std::swap(lists.logprobs[first], lists.logprobs[first + 1]);
  return at(*position);
}

Where replace_entry(EngineResult* result, const Spoil& spoil) {
  CandidateLists& lists = result->generated_top_n;
  const std::optional<size_t> position = list_position(lists, spoil.places);
  if (!position) return std::nullopt;
  const size_t first = first_entry(lists, *position);
  const std::span here(lists.ids.data() + first, lists.counts[*position]);
  for (size_t i = 0; i < lists.ids.size(); ++i) {
    if (std::find(here.begin(), here.end(), lists.ids[i]) != here.end()) continue;
    lists.ids[first] = lists.ids[i];
    lists.texts[first] = lists.texts[i];
    return at(*position) + " entry 0 is " + std::to_string(lists.ids[first]);
  }
  return std::nullopt;
}

std::string routing_place(size_t token, size_t layer) {
  return "position " + std::to_string(token) + " layer " + std::to_string(layer);
}

Where replace_expert(EngineResult* result, const Spoil& spoil) {
  if (result->routing.empty() || result->moe_topk == 0) return std::nullopt;
  const size_t token = spoil.places.pick(result->routing_tokens);
  const size_t layer = spoil.places.pick(result->moe_layers, 1);
  const std::span chosen(result->routing.data() + (token * result->moe_layers + layer) * result->moe_topk,
                         result->moe_topk);
  uint16_t other = 0;  // topk + 1 ids hold one that was not chosen
  while (std::find(chosen.begin(), chosen.end(), other) != chosen.end()) ++other;
  chosen[spoil.places.pick(chosen.size(), 2)] = other;
  std::sort(chosen.begin(), chosen.end());
  return routing_place(token, layer);
}

Where swap_layers(EngineResult* result, const Spoil& spoil) {
  const size_t row = result->moe_layers * result->moe_topk;
  std::vector<size_t> unlike;  // index of the first of two unlike layers, over all tokens
  for (size_t i = 0; i + 1 < result->routing_tokens * result->moe_layers; ++i) {
    if (result->moe_layers == 0 || (i + 1) % result->moe_layers == 0) continue;
    const auto first = result->routing.begin() + static_cast<ptrdiff_t>(i * result->moe_topk);
    const auto second = first + static_cast<ptrdiff_t>(result->moe_topk);
    if (!std::equal(first, second, second)) unlike.push_back(i);
  }
  if (row == 0 || unlike.empty()) return std::nullopt;
  const size_t place = unlike[spoil.places.pick(unlike.size())];
  const auto first = result->routing.begin() + static_cast<ptrdiff_t>(place * result->moe_topk);
  const auto second = first + static_cast<ptrdiff_t>(result->moe_topk);
  std::swap_ranges(first, second, second);
  return routing_place(place / result->moe_layers, place % result->moe_layers);
}

}  // namespace

Spoiler number_spoiler(Fault fault) {
  switch (fault) {
    case Fault::kWrongLogprob:
      return wrong;
    case Fault::kShiftedLogprobs:
      return shift;
    case Fault::kDroppedPromptLogprobs:
      return drop_prompt;
    case Fault::kFp16Logprobs:
      return round_fp16;
    case Fault::kBf16Logprobs:
      return round_bf16;
    case Fault::kBf16Probabilities:
      return round_probabilities;
    case Fault::kNanLogprob:
      return not_a_number;
    case Fault::kInfLogprob:
      return infinite;
    case Fault::kTopNOrder:
      return reorder_list;
    case Fault::kTopNEntry:
      return replace_entry;
    case Fault::kRoutingReport:
      return replace_expert;
    case Fault::kRoutingLayers:
      return swap_layers;
    case Fault::kUnstableLogprob:
      return unstable;
    default:
      return nullptr;
  }
}

}  // namespace assay::engines
