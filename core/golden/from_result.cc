#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>

#include "assay/golden.h"
#include "assay/sdk.hpp"
#include "core/golden/json_text.h"
#include "core/golden/text.h"

namespace assay {
namespace {

std::optional<std::string> text_of(assay_str value) {
  if (value.data == nullptr) return std::nullopt;
  return std::string(value.data, value.size);
}

std::optional<std::vector<double>> doubles_of(assay_doubles values) {
  if (values.size == 0) return std::nullopt;
  return std::vector<double>(values.data, values.data + values.size);
}

std::optional<std::vector<int32_t>> ids_of(assay_ids ids) {
  if (ids.size == 0) return std::nullopt;
  return std::vector<int32_t>(ids.data, ids.data + ids.size);
}

// Equal texts within a position collide as in Python's dict: the last value, at the first one's place.
std::optional<TopLists> lists_of(const assay_candidates& candidates) {
  if (candidates.positions == 0) return std::nullopt;
  TopLists lists;
  const assay_candidate* candidate = candidates.entries;
  for (size_t position = 0; position < candidates.positions; ++position) {
    const size_t first = lists.entries.size();
    for (uint32_t i = 0; i < candidates.counts[position]; ++i, ++candidate) {
      std::string text = candidate->text.size > 0 ? std::string(candidate->text.data, candidate->text.size)
                                                  : std::to_string(candidate->id);
      size_t same = first;
      while (same < lists.entries.size() && lists.entries[same].text != text) ++same;
      if (same == lists.entries.size()) lists.entries.push_back({std::move(text)});
      lists.entries[same].logprob = candidate->logprob;
      lists.entries[same].id = candidate->id;
    }
    lists.counts.push_back(static_cast<uint32_t>(lists.entries.size() - first));
  }
  return lists;
}

std::optional<Routing> routing_of(const assay_result& result) {
  if (result.routing == nullptr) return std::nullopt;
  Routing routing;
  routing.tokens = result.routing_tokens;
  routing.layers = result.moe_layers;
  routing.topk = result.moe_topk;
  routing.experts.assign(result.routing, result.routing + routing.tokens * routing.layers * routing.topk);
  if (ASSAY_KNOWS(&result, routing_margins) && result.routing_margins != nullptr) {
    routing.margins.assign(result.routing_margins, result.routing_margins + routing.tokens * routing.layers);
  }
  return routing;
}

// What an engine of ABI 1.1 tells beside the values of the schema.
Status add_logits(const assay_result& result, RequestRecord& record) {
  const auto check = [&](const char* what, size_t seen) -> Status {
    if (seen == 0 || seen == result.tokens.size) return {};
    return invalid(fmt::format("request {}: the engine gave {} {} for {} tokens, expected one each", record.id, seen,
                               what, result.tokens.size));
  };
  if (ASSAY_KNOWS(&result, generated_ranks)) {
    if (Status status = check("generated ranks", result.generated_ranks.size); !status.ok()) return status;
    record.ranks = ids_of(result.generated_ranks);
  }
  if (ASSAY_KNOWS(&result, generated_logits)) {
    if (Status status = check("generated logits", result.generated_logits.size); !status.ok()) return status;
    record.logits = doubles_of(result.generated_logits);
  }
  return {};
}

// Token indices of the rows of routing, which assay_result has no member for.
Status add_positions(const nlohmann::json& positions, RequestRecord& record) {
  Routing& routing = *record.routing;
  const bool fits =
      positions.is_array() && positions.size() == routing.tokens &&
      std::all_of(positions.begin(), positions.end(), [](const nlohmann::json& position) {
        return position.is_number_integer() && position >= 0 && position <= std::numeric_limits<int32_t>::max();
      });
  if (!fits) {
    return invalid(
        fmt::format("request {}: routing_indices_token_indices of the engine's result is {}, expected {} "
                    "token indices, one a row of routing",
                    record.id, text::quoted(positions.dump(), 60), routing.tokens));
  }
  routing.positions = positions.get<std::vector<int32_t>>();
  return {};
}

// Fields of the JSON object in assay_result.extra: what the schema knows goes to its place, the rest is kept.
Status add_extra(assay_str extra, RequestRecord& record) {
  if (extra.size == 0) return {};
  const std::string text(extra.data, extra.size);
  if (json::deeper_than(text, json::kDeepest)) {
    return invalid(
        fmt::format("request {}: extra of the engine's result is nested more than {} deep", record.id, json::kDeepest));
  }
  const nlohmann::json parsed = nlohmann::json::parse(text, nullptr, false);
  if (!parsed.is_object()) {
    return invalid(fmt::format("request {}: extra of the engine's result is {}, expected a JSON object", record.id,
                               text::quoted(text, 60)));
  }
  for (const auto& [name, value] : parsed.items()) {
    if (name == "routing_indices_token_indices" && record.routing) {
      if (Status status = add_positions(value, record); !status.ok()) return status;
      continue;
    }
    record.extra.emplace_back(name, value.dump(-1, ' ', true, nlohmann::json::error_handler_t::replace));
  }
  return {};
}

}  // namespace

Result<RequestRecord> record_of(const assay_result& result, std::string id) {
  RequestRecord record;
  record.id = std::move(id);
  const size_t generated = result.generated_logprobs.size;
  // An engine that knows no ids still has the text, and perhaps logprobs, of what it generated.
  const bool no_ids = result.tokens.size == 0 && result.text.size != 0;
  if (generated != 0 && generated != result.tokens.size && !no_ids) {
    return invalid(fmt::format("request {}: the engine gave {} generated logprobs for {} tokens, expected one each",
                               record.id, generated, result.tokens.size));
  }
  record.prompt = text_of(result.prompt);
  record.prompt_ids = ids_of(result.prompt_ids);
  record.text = text_of(result.text);
  if (!no_ids) record.tokens.emplace(result.tokens.data, result.tokens.data + result.tokens.size);
  // Logprobs of a request that ended before its first token are those of the prompt alone.
  if (generated != 0 || (result.tokens.size == 0 && result.prompt_logprobs.size != 0)) {
    record.logprobs = doubles_of(result.prompt_logprobs).value_or(std::vector<double>());
    record.logprobs->insert(record.logprobs->end(), result.generated_logprobs.data,
                            result.generated_logprobs.data + generated);
  } else {
    record.prompt_logprobs = doubles_of(result.prompt_logprobs);
  }
  record.top_n = lists_of(result.generated_top_n);
  record.prompt_top_n = lists_of(result.prompt_top_n);
  if (!record.top_n && record.prompt_top_n && result.tokens.size == 0) record.top_n.emplace();
  record.tpot = doubles_of(result.tpot);
  if (result.latency != 0) record.latency = result.latency;
  record.routing = routing_of(result);
  if (Status status = add_logits(result, record); !status.ok()) return status;
  if (Status status = add_extra(result.extra, record); !status.ok()) return status;
  return record;
}

}  // namespace assay
