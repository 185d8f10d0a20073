#include "plugins/engines/replay/record_result.h"

#include <nlohmann/json.hpp>
#include <utility>

namespace assay::engines {
namespace {

CandidateLists lists_of(const std::optional<TopLists>& from) {
  CandidateLists lists;
  if (!from) return lists;
  lists.counts = from->counts;
  lists.ids.assign(from->entries.size(), -1);
  for (const TopEntry& entry : from->entries) {
    lists.logprobs.push_back(entry.logprob);
    lists.texts.emplace_back(entry.text);
  }
  return lists;
}

Status take_logprobs(const RequestRecord& record, EngineResult* result, std::vector<std::string>* notes) {
  const size_t tokens = result->tokens.size();
  if (!record.logprobs) {
    result->prompt_logprobs = record.prompt_logprobs.value_or(std::vector<double>());
    result->generated_logprobs = record.generated_logprobs.value_or(std::vector<double>());
    const size_t generated = result->generated_logprobs.size();
    if (generated == 0 || generated == tokens) return {};
    return invalid("record " + record.id + " holds " + std::to_string(generated) + " generated logprobs for " +
                   std::to_string(tokens) + " tokens, expected one each");
  }
  const std::vector<double>& all = *record.logprobs;
  if (all.size() < tokens) {
    return invalid("record " + record.id + " holds " + std::to_string(all.size()) + " logprobs for " +
                   std::to_string(tokens) + " tokens, expected at least one each");
  }
  if (!record.tokens && !all.empty()) {
    notes->push_back("record " + record.id + " holds logprobs but no tokens; the logprobs are left out");
    return {};
  }
  const auto middle = all.end() - static_cast<ptrdiff_t>(tokens);
  result->prompt_logprobs.assign(all.begin(), middle);
  result->generated_logprobs.assign(middle, all.end());
  return {};
}

void take_extra(const RequestRecord& record, EngineResult* result, std::vector<std::string>* notes) {
  std::string members;
  const auto add = [&members](const std::string& name, const std::string& json) {
    members += (members.empty() ? "" : ", ") + nlohmann::json(name).dump() + ": " + json;
  };
  if (record.routing && !record.routing->positions.empty()) {
    add("routing_indices_token_indices", nlohmann::json(record.routing->positions).dump());
  }
  for (const auto& [name, json] : record.extra) {
    if (nlohmann::json::accept(json)) {
      add(name, json);
    } else {
      notes->push_back("record " + record.id + ": field " + name + " is no JSON value and is left out");
    }
  }
  if (!members.empty()) result->extra = "{" + members + "}";
}

}  // namespace

Result<EngineResult> result_of(const RequestRecord& record, uint64_t id, std::vector<std::string>* notes) {
  EngineResult result;
  result.id = id;
  result.prompt = record.prompt;
  result.text = record.text;
  result.prompt_ids = record.prompt_ids.value_or(std::vector<int32_t>());
  result.tokens = record.tokens.value_or(std::vector<int32_t>());
  if (Status status = take_logprobs(record, &result, notes); !status.ok()) return status;
  result.prompt_top_n = lists_of(record.prompt_top_n);
  result.generated_top_n = lists_of(record.top_n);
  result.tpot = record.tpot.value_or(std::vector<double>());
  result.latency = record.latency.value_or(0);
  if (record.routing) {
    result.routing = record.routing->experts;
    result.routing_tokens = record.routing->tokens;
    result.moe_layers = record.routing->layers;
    result.moe_topk = record.routing->topk;
    result.routing_margins = record.routing->margins;
  }
  take_extra(record, &result, notes);
  return result;
}

}  // namespace assay::engines
