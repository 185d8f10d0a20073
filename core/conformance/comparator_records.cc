#include "core/conformance/comparator_records.h"

#include <limits>
#include <span>

#include "assay/sdk.hpp"

namespace assay::conformance {
namespace {

constexpr size_t kLayers = 2;
constexpr size_t kTopK = 2;
constexpr size_t kTopN = 2;
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

template <class T>
void shift(std::vector<T>& values, T by) {
  for (T& value : values) value = static_cast<T>(value + by);
}

void change_text(RecordData& r) { r.text = "Something else was written here altogether."; }
void change_tokens(RecordData& r) { shift(r.tokens, 7); }
void change_logprobs(RecordData& r) { shift(r.logprobs, -3.0); }
void change_top_n(RecordData& r) {
  shift(r.top_ids, 9);
  shift(r.top_logprobs, -3.0);
}
void change_routing(RecordData& r) {
  for (uint16_t& expert : r.routing) expert = static_cast<uint16_t>(expert + 4);
}
void change_times(RecordData& r) {
  for (double& seconds : r.tpot) seconds *= 1000;
  r.latency *= 1000;
}

}  // namespace

RecordData whole_record(size_t which) {
  const auto salt = static_cast<int32_t>(which % 5);
  const size_t prompt = 4;
  const size_t generated = 12;
  RecordData r;
  r.has = ASSAY_HAS_PROMPT | ASSAY_HAS_TEXT | ASSAY_HAS_TOKENS | ASSAY_HAS_LOGPROBS | ASSAY_HAS_TOP_N |
          ASSAY_HAS_ROUTING | ASSAY_HAS_PROMPT_IDS | ASSAY_HAS_TPOT | ASSAY_HAS_LATENCY | ASSAY_HAS_ROUTING_MARGINS;
  r.prompt = "Everyone is permitted to copy";
  r.text = " and distribute verbatim copies of this license document, but changing it is not allowed.";
  for (size_t i = 0; i < prompt; ++i) r.prompt_ids.push_back(salt + 3 + static_cast<int32_t>(i));
  for (size_t i = 0; i < generated; ++i) {
    r.tokens.push_back(salt + 10 + static_cast<int32_t>(i));
    for (size_t n = 0; n < kTopN; ++n) {
      r.top_ids.push_back(r.tokens.back() + static_cast<int32_t>(20 * n));
      r.top_logprobs.push_back(-0.25 - static_cast<double>(n));
    }
    r.tpot.push_back(0.01);
  }
  for (size_t i = 0; i < prompt - 1 + generated; ++i) {
    r.logprobs.push_back(-0.25);
    for (size_t k = 0; k < kLayers * kTopK; ++k) r.routing.push_back(static_cast<uint16_t>(k % kTopK + 1));
    for (size_t k = 0; k < kLayers; ++k) r.margins.push_back(0.5F);
  }
  r.latency = 0.2;
  return r;
}

const assay_record* put_record(Lent& lent, const RecordData& data, size_t size) {
  auto record = sdk::sized<assay_record>();
  record.size = static_cast<uint32_t>(size);
  record.has = data.has;
  record.prompt = lent.put(data.prompt);
  record.text = lent.put(data.text);
  record.prompt_ids = lent.put(std::span<const int32_t>(data.prompt_ids));
  record.tokens = lent.put(std::span<const int32_t>(data.tokens));
  record.logprobs = lent.put(std::span<const double>(data.logprobs));
  std::vector<assay_candidate> entries;
  for (size_t i = 0; i < data.top_ids.size(); ++i) {
    const std::string text = "t" + std::to_string(data.top_ids[i]);
    entries.push_back({data.top_ids[i], 0, data.top_logprobs[i], lent.put(text)});
  }
  const std::vector<uint32_t> counts(data.top_ids.size() / kTopN, kTopN);
  record.top_n = {lent.array(std::span<const assay_candidate>(entries)), lent.array(std::span<const uint32_t>(counts)),
                  counts.size()};
  record.routing = lent.array(std::span<const uint16_t>(data.routing));
  record.routing_tokens = data.routing.size() / (kLayers * kTopK);
  record.moe_layers = kLayers;
  record.moe_topk = kTopK;
  record.tpot = lent.put(std::span<const double>(data.tpot));
  record.latency = data.latency;
  record.routing_margins = lent.array(std::span<const float>(data.margins));
  if (size < sizeof(record)) return lent.cut(record, size);
  if (size == sizeof(record)) return lent.object(record);
  record.size = sizeof(record);
  return lent.grown(record, size - sizeof(record));
}

const std::vector<Content>& contents() {
  static const std::vector<Content> all = {
      {"text", ASSAY_HAS_TEXT, change_text, nullptr},
      {"tokens", ASSAY_HAS_TOKENS, change_tokens, nullptr},
      {"logprobs", ASSAY_HAS_LOGPROBS, change_logprobs, [](RecordData& r) { r.logprobs[1] = kNaN; }},
      {"top-n", ASSAY_HAS_TOP_N, change_top_n, [](RecordData& r) { r.top_logprobs[0] = kNaN; }},
      {"routing", ASSAY_HAS_ROUTING, change_routing, nullptr},
      {"times", ASSAY_HAS_TPOT | ASSAY_HAS_LATENCY, change_times,
       [](RecordData& r) {
         for (double& seconds : r.tpot) seconds = kNaN;
         r.latency = kNaN;
       }},
  };
  return all;
}

}  // namespace assay::conformance
