// Relations about how a prompt gets through the model.
#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <string_view>
#include <utility>

#include "core/metamorphic/experiment.h"

namespace assay::metamorphic {
namespace {

constexpr size_t kSmallBlock = 16;  // tokens of a block where it is small

// Requests for the cache under test, asked before those that are judged; `kept`: tokens of each that stay, the rest is
// turned round.
std::vector<Ask> warm(std::vector<Ask> asks, double kept) {
  for (Ask& ask : asks) {
    ask.id = "earlier-" + ask.id;
    ask.judged = false;
    const auto stay = static_cast<ptrdiff_t>(static_cast<double>(ask.ids.size()) * kept);
    std::reverse(ask.ids.begin() + stay, ask.ids.end());
  }
  return asks;
}

// What every relation here needs beside options: prompts of a known length.
std::string missing(const Setting& setting, std::string_view relation, const std::vector<std::string>& options) {
  std::string line = missing_options(setting, options);
  if (line.empty() && !setting.workload.has_ids()) {
    line = fmt::format("engine {} tells no prompt ids or takes none, which {} needs to make prompts of a known length",
                       setting.engine, relation);
  }
  return line;
}

// The same prompts but for their first token: no block of them may be taken.
std::vector<Ask> alike_behind_another_token(std::vector<Ask> asks) {
  for (Ask& ask : asks) {
    ask.id = "alike-" + ask.id;
    ask.judged = false;
    const int32_t first = ask.ids.front();
    const auto other = std::find_if(ask.ids.begin(), ask.ids.end(), [first](int32_t id) { return id != first; });
    if (other != ask.ids.end()) ask.ids.front() = *other;
  }
  return asks;
}

// Turned round so that no two begin with the same token: none shares blocks with another, which would leave room. One
// that has no such token stays.
void begin_apart(std::vector<Ask>* asks) {
  std::set<int32_t> begun;
  for (Ask& ask : *asks) {
    const auto fresh = std::find_if(ask.ids.begin(), ask.ids.end(), [&](int32_t id) { return begun.count(id) == 0; });
    if (fresh != ask.ids.end()) std::rotate(ask.ids.begin(), fresh, ask.ids.end());
    if (!ask.ids.empty()) begun.insert(ask.ids.front());
  }
}

// Blocks that hold every prompt and its first new token, and nothing of what follows, but one request to its end.
size_t little_room_for(const std::vector<Ask>& asks, size_t block, size_t new_tokens) {
  size_t prompts = 0;
  size_t largest = 0;
  for (const Ask& ask : asks) {
    prompts += blocks_of(ask.ids.size() + 1, block);
    largest = std::max(largest, blocks_of(ask.ids.size() + new_tokens, block));
  }
  return std::max(prompts, largest);
}

}  // namespace

Experiment prefix_cache(const Setting& setting) {
  Experiment made;
  made.missing = missing(setting, "prefix_cache", {"prefix_caching"});
  if (!made.missing.empty()) return made;
  Trial trial;
  const std::vector<Ask> asks = {setting.workload.long_ask(0), setting.workload.long_ask(1)};
  const std::vector<std::string> ids = ids_of(asks);
  // Two tokens at least of a prompt may have to be computed in any case.
  const size_t shortest = std::min(asks[0].ids.size(), asks[1].ids.size());
  const size_t large = std::clamp<size_t>(shortest > 2 ? (shortest - 2) / 2 : 1, 1, kBlock);
  const size_t block = shortest >= kBlock + 2 ? kBlock : large;
  const size_t small = std::clamp<size_t>(shortest / 4, 1, kSmallBlock);
  trial.reference.name = "no prefix cache";
  trial.reference.prompt_logprobs = false;
  trial.reference.engine_options["prefix_caching"] = "false";
  trial.reference.calls.push_back({.asks = asks});
  trial.untouched =
      counters_within({.counter = Counter::kCachedTokens, .over = Over::kSum, .least = 0, .most = 0}, ids);
  const auto add = [&](std::string name, size_t tokens_of_block, std::vector<Call> calls, bool kept) {
    Way way;
    way.name = std::move(name);
    way.prompt_logprobs = false;
    way.engine_options["prefix_caching"] = "true";
    way.engine_options["block_size"] = std::to_string(tokens_of_block);
    if (kept) way.engine_options["prefix_caching_eviction_policy"] = "\"lru\"";
    way.calls = std::move(calls);
    trial.changed.push_back(
        {.way = std::move(way),
         .mechanism = counters_within({.counter = Counter::kCachedTokens, .over = Over::kSum, .least = 1}, ids)});
  };
  std::vector<Ask> together = warm(asks, 1);
  together.insert(together.end(), asks.begin(), asks.end());
  add(fmt::format("whole prompts in the cache, blocks of {}", block), block, {{.asks = warm(asks, 1)}, {.asks = asks}},
      true);
  std::vector<Ask> halves = warm(asks, 0.5);
  for (Ask& ask : alike_behind_another_token(asks)) halves.push_back(std::move(ask));
  add(fmt::format("half of each prompt in the cache, blocks of {}", small), small,
      {{.asks = std::move(halves)}, {.asks = asks}}, true);
  add(fmt::format("shared with requests that run, blocks of {}", small), small, {{.asks = std::move(together)}}, false);
  made.trials.push_back(std::move(trial));
  return made;
}

Experiment chunked_prefill(const Setting& setting) {
  Experiment made;
  made.missing = missing(setting, "chunked_prefill", {"chunked_prefill", "max_chunk"});
  if (!made.missing.empty()) return made;
  Trial trial;
  const std::vector<Ask> asks = {setting.workload.long_ask(0), setting.workload.ask(1)};
  trial.reference.name = "prompts in one piece";
  trial.reference.calls.push_back({.asks = asks});
  trial.untouched =
      counters_within({.counter = Counter::kChunks, .over = Over::kEach, .least = 1, .most = 1}, ids_of(asks));
  for (const int32_t chunk : setting.parameters.chunks) {
    Way way;
    way.name = fmt::format("chunks of {}", chunk);
    way.engine_options["chunked_prefill"] = "true";
    way.engine_options["max_chunk"] = std::to_string(chunk);
    way.calls.push_back({.asks = asks});
    trial.changed.push_back(
        {.way = std::move(way),
         .mechanism = counters_within({.counter = Counter::kChunks, .over = Over::kEach, .least = 2}, {asks[0].id})});
  }
  made.trials.push_back(std::move(trial));
  return made;
}

Experiment preempt_resume(const Setting& setting) {
  Experiment made;
  made.missing = missing(setting, "preempt_resume", {"block_count", "block_size", "max_requests"});
  if (!made.missing.empty()) return made;
  Trial trial;
  constexpr size_t kOthers = 4;
  std::vector<Ask> asks = setting.workload.asks(kOthers);
  asks[0] = setting.workload.long_ask(0);
  asks.push_back(setting.workload.ask_of(kOthers, static_cast<size_t>(setting.workload.new_tokens())));
  begin_apart(&asks);
  // A small one that ends half way: who was preempted begins again with its blocks, and has to give way once more.
  Ask small = asks.back();
  asks.pop_back();
  small.new_tokens = std::max(setting.workload.new_tokens() / 2, 1);
  // A request that ends early needs no room.
  std::map<std::string, std::string> lasting;
  if (missing_options(setting, {"termination_id"}).empty()) lasting["termination_id"] = "-1";
  trial.reference.name = "a cache with room for all";
  trial.reference.engine_options = lasting;
  trial.reference.calls.push_back({.asks = asks});
  trial.reference.calls[0].asks.push_back(small);
  trial.untouched =
      counters_within({.counter = Counter::kPreemptions, .over = Over::kSum, .least = 0, .most = 0}, ids_of(asks));
  // So small that a request needs further ones for its new tokens.
  const auto new_tokens = static_cast<size_t>(setting.workload.new_tokens());
  const size_t block = std::clamp<size_t>(new_tokens / 4, 1, kSmallBlock);
  const auto add = [&](const char* name, std::vector<Ask> order, std::map<std::string, std::string> options) {
    Way way;
    way.name = name;
    way.engine_options = std::move(options);
    way.engine_options.insert(lasting.begin(), lasting.end());
    way.engine_options["block_size"] = std::to_string(block);
    way.engine_options["block_count"] = std::to_string(little_room_for(order, block, new_tokens));
    way.engine_options["max_requests"] = std::to_string(order.size());
    std::vector<std::string> ids = ids_of(order);
    way.calls.push_back({.asks = std::move(order)});
    trial.changed.push_back({.way = std::move(way),
                             .mechanism = counters_within(
                                 {.counter = Counter::kPreemptions, .over = Over::kSum, .least = 1}, std::move(ids))});
  };
  add("little room, short requests are the youngest", asks, {});
  if (block > 1) add("little room, and some of it free half way", {asks[0], small, asks[2], asks[3]}, {});
  std::rotate(asks.begin(), asks.begin() + 1, asks.end());
  add("little room, the long request is the youngest", asks, {});
  // Who begins again finds blocks of its own.
  if (missing_options(setting, {"prefix_caching", "prefix_caching_eviction_policy"}).empty()) {
    add("little room and a prefix cache", asks,
        {{"prefix_caching", "true"}, {"prefix_caching_eviction_policy", "\"lru\""}});
  }
  // The long prompt is under way when others, whose prompts go in one piece, need room.
  size_t chunk = 1;
  for (size_t i = 0; i + 1 < asks.size(); ++i) chunk = std::max(chunk, asks[i].ids.size());
  const bool lasts = asks.back().ids.size() / chunk > block + 2;  // chunks; others want a block after so many steps
  if (lasts && missing_options(setting, {"chunked_prefill", "max_chunk"}).empty()) {
    add("little room, prompts in chunks", asks, {{"chunked_prefill", "true"}, {"max_chunk", std::to_string(chunk)}});
  }
  made.trials.push_back(trial);
  add_drawn(setting, trial, &made);
  return made;
}

}  // namespace assay::metamorphic
