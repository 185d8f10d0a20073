#include "core/metamorphic/experiment.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

namespace assay::metamorphic {
namespace {

constexpr size_t kUsualTokens = 16384;  // of a step, where the requests need no more

using Maker = Experiment (*)(const Setting&);
constexpr std::array<Maker, 12> kMakers = {  // in the order of Relation
    solo_vs_batch,  shuffled_order, changed_neighbours, repeated_call,     prefix_cache, chunked_prefill,
    preempt_resume, stop_continue,  static_vs_buffered, prefill_vs_decode, thread_count, save_load};

// Of the largest call, where lengths are known.
struct Size {
  size_t requests = 1;
  size_t tokens = 0;    // prompt + new ones, of all requests
  size_t sequence = 0;  // ... of the longest
  size_t blocks = 1;
};

Size size_of(const Way& way) {
  Size largest;
  for (const Call& call : way.calls) {
    Size size;
    for (const Ask& ask : call.asks) {
      const size_t tokens = ask.ids.size() + static_cast<size_t>(std::max(ask.new_tokens, 0));
      size.tokens += tokens;
      size.blocks += blocks_of(tokens, kBlock);
      largest.sequence = std::max(largest.sequence, tokens);
    }
    largest.requests = std::max(largest.requests, call.asks.size());
    largest.tokens = std::max(largest.tokens, size.tokens);
    largest.blocks = std::max(largest.blocks, size.blocks);
  }
  return largest;
}

}  // namespace

Experiment make_experiment(Relation relation, const Setting& setting) {
  return kMakers.at(static_cast<size_t>(relation))(setting);
}

Ask over_a_block(const Workload& workload, size_t index) {
  const size_t border = workload.long_ask(index).ids.size() / kBlock * kBlock;
  const auto half = static_cast<size_t>(workload.new_tokens() / 2);
  return border > half ? workload.ask_of(index, border - half) : workload.ask(index);
}

void settle_options(const Setting& setting, Way* way) {
  std::map<std::string, std::string> wanted = way->engine_options;
  const auto usual = [&](const char* member, const std::string& value) { wanted.try_emplace(member, value); };
  const Size size = size_of(*way);
  usual("max_requests", std::to_string(size.requests));
  usual("requests_per_step", "0");
  usual("requests_per_second", "-1");
  usual("chunked_prefill", "false");
  usual("max_chunk", "0");
  usual("prefix_caching", "false");
  if (way->prompt_logprobs) usual("skip_prompt_logprobs", "false");  // whatever the case leaves out
  usual("suspend_interval", "0");
  if (setting.workload.has_ids()) {
    usual("max_sequence_length", std::to_string(size.sequence));
    usual("max_tokens", std::to_string(std::max(size.tokens, kUsualTokens)));
    if (wanted.count("block_size") == 0) {
      usual("block_count", std::to_string(size.blocks));
    } else if (wanted.count("block_count") == 0) {
      usual("block_count", std::to_string(size.tokens + 1));
    }
    usual("block_size", std::to_string(kBlock));
  }
  way->engine_options.clear();
  for (auto& [member, value] : wanted) {
    if (setting.laboratory.has_engine_option(way->engine, member)) way->engine_options[member] = std::move(value);
  }
}

void add_drawn(const Setting& setting, const Trial& trial, Experiment* made) {
  if (!setting.greedy || (setting.laboratory.capabilities("").value_or(0) & ASSAY_CAP_SEED) == 0) return;
  Trial drawn = trial;
  const auto draw = [](Way* way) {
    way->drawn = true;
    way->name += ", tokens drawn";
  };
  draw(&drawn.reference);
  for (Changed& changed : drawn.changed) draw(&changed.way);
  made->trials.push_back(std::move(drawn));
}

std::vector<std::string> ids_of(const std::vector<Ask>& asks) {
  std::vector<std::string> ids;
  ids.reserve(asks.size());
  for (const Ask& ask : asks) ids.push_back(ask.id);
  return ids;
}

std::string missing_options(const Setting& setting, const std::vector<std::string>& members) {
  std::vector<std::string> missing;
  for (const std::string& member : members) {
    if (!setting.laboratory.has_engine_option("", member)) missing.push_back(member);
  }
  if (missing.empty()) return "";
  return fmt::format("options of engine {} lack {}", setting.engine, fmt::join(missing, ", "));
}

}  // namespace assay::metamorphic
