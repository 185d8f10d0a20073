// For tests: an engine in a few lines. A token is a hash of all ids before it, a logprob a hash of those and the token,
// unless a fault is planted that lets one of the mechanisms shine through.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "assay/plugin_abi.h"
#include "core/metamorphic/way.h"

namespace assay::metamorphic {

// What the numbers of a request depend on beside its ids; kNothing: a good engine.
enum class Planted {
  kNothing,
  kBatchSize,
  kSlot,
  kNeighbours,
  kEarlierRequests,  // even behind a reset
  kCache,
  kChunks,
  kPreemption,
  kPromptBorder,  // what was prompt and what was generated
  kEngine,
  kPrefill,  // logprobs of prompts
  kThreads,
  kFiles,
};

class FakeLaboratory : public Laboratory {
 public:
  Planted planted = Planted::kNothing;
  bool changes_tokens = false;  // the fault strikes the first token too
  double shift = 0.25;          // of a logprob, by the fault
  uint64_t determinism = 0;
  uint64_t can = ASSAY_CAP_TOKENS | ASSAY_CAP_LOGPROBS | ASSAY_CAP_PROMPT_LOGPROBS;
  std::set<std::string> engine_options = {"max_requests",   "chunked_prefill", "max_chunk", "block_count",
                                          "prefix_caching", "block_size",      "results"};
  std::set<std::string> backend_options = {"threads"};
  std::set<std::string> idle;  // options without effect: the mechanism is off
  bool counts = true;          // tells engine_counters
  bool tells_ids = true;
  bool takes_ids = true;
  bool has_other_engine = true;
  bool saves = true;
  bool ends_at_once = false;  // no token is ever generated
  std::string failing;        // way whose first request fails
  std::vector<Way> seen;      // all ways that were run

  std::optional<uint64_t> capabilities(const std::string& engine) const override {
    if (engine.empty() || has_other_engine) return can;
    return std::nullopt;
  }
  bool has_engine_option(const std::string&, const std::string& member) const override {
    return engine_options.count(member) > 0;
  }
  bool has_backend_option(const std::string& member) const override { return backend_options.count(member) > 0; }

  Result<WayResult> run(const Way& way) override {
    seen.push_back(way);
    if (way.resaved && !saves) return unsupported("this checkpoint cannot be written anew");
    WayResult result;
    result.engine = way.engine.empty() || idle.count("engine") > 0 ? "static_legacy" : way.engine;
    const auto threads = way.backend_options.find("threads");
    const bool threaded = threads != way.backend_options.end() && idle.count("threads") == 0;
    result.device = "fake x" + (threaded ? threads->second : std::string("1"));
    result.checkpoint = way.resaved && idle.count("files") == 0 ? "/new" : "/old";
    result.determinism = determinism;
    uint64_t earlier = 0;
    for (const Call& call : way.calls) {
      for (size_t begin = 0; begin < call.asks.size();) {
        const size_t size = std::min(number(way, "max_requests", 8), call.asks.size() - begin);
        for (size_t i = begin; i < begin + size; ++i) {
          if (way.name == failing && result.failed.empty()) {
            result.failed.push_back({call.asks[i].id, StatusCode::kExhausted, "too long"});
          } else {
            result.records.push_back(answer(way, call, {.begin = begin, .size = size, .place = i, .earlier = earlier}));
          }
        }
        begin += size;
      }
      earlier += call.asks.size();
    }
    std::sort(result.records.begin(), result.records.end(),
              [](const RequestRecord& a, const RequestRecord& b) { return request_id_less(a.id, b.id); });
    return result;
  }

 private:
  struct Batch {
    size_t begin = 0;
    size_t size = 0;
    size_t place = 0;      // of the request in its call
    uint64_t earlier = 0;  // requests of earlier calls
  };

  static uint64_t mix(uint64_t hash, uint64_t value) { return (hash ^ value) * 0x9e3779b97f4a7c15U + (hash >> 29); }

  size_t number(const Way& way, const std::string& member, size_t otherwise) const {
    const auto found = way.engine_options.find(member);
    if (found == way.engine_options.end() || idle.count(member) > 0) return otherwise;
    return found->second == "true" ? 1 : found->second == "false" ? 0 : std::stoul(found->second);
  }

  // True where the planted fault strikes this request.
  bool strikes(const Way& way, const Call& call, const Batch& batch, const Counters& counters) const {
    switch (planted) {
      case Planted::kBatchSize:
        return batch.size > 2;
      case Planted::kSlot:
        return (batch.place - batch.begin) % 2 == 1;
      case Planted::kNeighbours: {
        uint64_t hash = 0;
        for (size_t i = batch.begin; i < batch.begin + batch.size; ++i) {
          if (!call.asks[i].ids.empty()) hash += static_cast<uint64_t>(call.asks[i].ids.front());
        }
        return hash % 2 == 1;
      }
      case Planted::kEarlierRequests:
        return batch.earlier > 0;
      case Planted::kCache:
        return counters.cached_tokens > 0;
      case Planted::kChunks:
        return counters.chunks > 2;
      case Planted::kPreemption:
        return counters.preemptions > 0;
      case Planted::kEngine:
        return !way.engine.empty();
      case Planted::kThreads:
        return way.backend_options.count("threads") > 0 && way.backend_options.at("threads") != "1";
      case Planted::kFiles:
        return way.resaved;
      default:
        return false;
    }
  }

  Counters counters_for(const Way& way, const Call& call, const Batch& batch, size_t prompt) const {
    Counters counters;
    counters.batch = batch.size;
    const size_t chunk = number(way, "chunked_prefill", 0) == 1 ? number(way, "max_chunk", 0) : 0;
    counters.chunks = chunk == 0 ? 1 : (prompt + chunk - 1) / chunk;
    const bool warm = call.asks[batch.place].judged && number(way, "prefix_caching", 0) == 1;
    counters.cached_tokens = warm ? prompt / 2 : 0;
    const size_t block = number(way, "block_size", 256);
    size_t needed = 0;
    for (const Ask& one : call.asks) {
      needed += (one.ids.size() + static_cast<size_t>(one.new_tokens) + block - 1) / block;
    }
    const bool tight = needed > number(way, "block_count", needed) && batch.place + 1 == call.asks.size();
    counters.preemptions = tight ? 1 : 0;
    return counters;
  }

  RequestRecord answer(const Way& way, const Call& call, const Batch& batch) const {
    const Ask& ask = call.asks[batch.place];
    std::vector<int32_t> ids = takes_ids ? ask.ids : std::vector<int32_t>{1};
    if (ask.ids.empty()) ids.assign(ask.text.begin(), ask.text.end());
    const size_t prompt = ids.size();
    const Counters counters = counters_for(way, call, batch, prompt);
    const bool struck = strikes(way, call, batch, counters);
    RequestRecord record;
    record.id = ask.id;
    if (tells_ids) record.prompt_ids = ids;
    record.tokens.emplace();
    record.logprobs.emplace();
    uint64_t hash = 0;
    for (size_t i = 0; i < prompt; ++i) {
      if (i > 0 && way.prompt_logprobs) record.logprobs->push_back(logprob(hash, ids[i], planted == Planted::kPrefill));
      hash = mix(hash, static_cast<uint64_t>(ids[i]));
    }
    for (int32_t i = 0; i < ask.new_tokens && !ends_at_once; ++i) {
      uint64_t leak = struck && changes_tokens ? 1 : 0;
      if (planted == Planted::kPromptBorder) leak = prompt;
      const auto token = static_cast<int32_t>(mix(hash, leak + 17) % 1000);
      record.tokens->push_back(token);
      record.logprobs->push_back(logprob(hash, token, struck));
      hash = mix(hash, static_cast<uint64_t>(token));
    }
    if (counts) {
      record.extra.emplace_back("engine_counters",
                                "{\"batch\": " + std::to_string(counters.batch) +
                                    ", \"chunks\": " + std::to_string(counters.chunks) +
                                    ", \"cached_tokens\": " + std::to_string(counters.cached_tokens) +
                                    ", \"preemptions\": " + std::to_string(counters.preemptions) + "}");
    }
    return record;
  }

  double logprob(uint64_t hash, int32_t token, bool struck) const {
    return -static_cast<double>(mix(hash, static_cast<uint64_t>(token)) % 4096) / 512.0 - (struck ? shift : 0.0);
  }
};

}  // namespace assay::metamorphic
