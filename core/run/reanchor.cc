#include "core/run/reanchor.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "assay/sdk.hpp"

namespace assay::run {
namespace {

using compare::PartedRequest;
using compare::RerunInput;
using compare::RerunPosition;
using compare::RerunRequest;
using compare::RerunResult;

const PartedRequest* find(const std::vector<PartedRequest>& parted, std::string_view id) {
  for (const PartedRequest& request : parted) {
    if (request.id == id) return &request;
  }
  return nullptr;
}

// The result with generated top-n lists of at most `top_n` entries, as the judged run has them.
Result<RequestRecord> record_like_judged(const assay_result& result, int32_t top_n, const std::string& id) {
  assay_result copy = result;
  std::vector<assay_candidate> entries;
  std::vector<uint32_t> counts;
  const assay_candidate* list = result.generated_top_n.entries;
  for (size_t i = 0; top_n > 0 && i < result.generated_top_n.positions; ++i) {
    const uint32_t kept = std::min(result.generated_top_n.counts[i], static_cast<uint32_t>(top_n));
    entries.insert(entries.end(), list, list + kept);
    counts.push_back(kept);
    list += result.generated_top_n.counts[i];
  }
  copy.generated_top_n = {entries.data(), counts.data(), counts.size()};
  if (top_n == 0) copy.prompt_top_n = {};
  return record_of(copy, id);
}

// Fills positions and record of a request whose golden tokens were forced.
void take_forced(const assay_result& result, bool parted, int32_t top_n, RerunRequest& request) {
  const std::span<const int32_t> tokens = sdk::ids(result.tokens);
  const size_t count = std::min(tokens.size(), request.golden_tokens.size());
  for (size_t i = 0; i < count; ++i) {
    if (tokens[i] != request.golden_tokens[i]) {
      request.not_done =
          fmt::format("the engine did not take the forced tokens: generated token {} is {}, forced was {}", i,
                      tokens[i], request.golden_tokens[i]);
      request.positions.clear();
      return;
    }
    request.positions.push_back(position_of(result, i, parted));
  }
  request.further = tokens.size() - count;
  if (request.further > 0 || count < request.golden_tokens.size()) return;
  Result<RequestRecord> record = record_like_judged(result, top_n, request.id);
  if (record.ok()) request.record = *std::move(record);
}

}  // namespace

compare::RerunPosition position_of(const assay_result& result, size_t position, bool lists) {
  RerunPosition found;
  if (position < result.generated_logprobs.size) found.golden_logprob = result.generated_logprobs.data[position];
  if (ASSAY_KNOWS(&result, generated_logits)) {
    if (position < result.generated_ranks.size) found.golden_rank = result.generated_ranks.data[position];
    if (position < result.generated_logits.size) found.golden_logit = result.generated_logits.data[position];
  }
  if (!lists || position >= result.generated_top_n.positions) return found;
  const assay_candidate* entry = result.generated_top_n.entries;
  for (size_t i = 0; i < position; ++i) entry += result.generated_top_n.counts[i];
  for (uint32_t i = 0; i < result.generated_top_n.counts[position]; ++i, ++entry) {
    found.top.push_back({std::string(sdk::text(entry->text)), entry->logprob, entry->id});
  }
  return found;
}

EngineRerun::EngineRerun(const EngineInput& input, const CaseOrder& order, int logits_mantissa, int vocab_size,
                         std::vector<RequestChange> changes)
    : input_(input),
      order_(order),
      logits_mantissa_(logits_mantissa),
      vocab_size_(vocab_size),
      changes_(std::move(changes)) {}

std::string EngineRerun::impossible(const EngineInput& input, const CaseOrder& order) {
  const plugin::Plugin& engine = *input.engine;
  if (engine.can(ASSAY_CAP_RECORDED))
    return "engine " + engine.name + " reads recorded results: no engine to run again";
  if (order.top_k != 1) {
    return fmt::format("tokens were drawn at random (top_k {}): near-ties are told for greedy decoding alone",
                       order.top_k);
  }
  for (const auto& [capability, what] :
       {std::pair(ASSAY_CAP_TOKENS, "tokens"), {ASSAY_CAP_TOP_N, "top-n logprobs"}, {ASSAY_CAP_LOGPROBS, "logprobs"}}) {
    if (!input.can(static_cast<uint64_t>(capability))) return "engine " + engine.name + " cannot supply " + what;
  }
  return "";
}

std::string EngineRerun::name_of(size_t prompt) const {
  return order_.request_ids.empty() ? std::to_string(order_.first_id + prompt) : order_.request_ids.at(prompt);
}

std::vector<RequestChange> EngineRerun::own_changes() const {
  std::vector<RequestChange> changes = changes_;
  changes.resize(order_.prompts.size());
  for (RequestChange& change : changes) change.logits = true;
  return changes;
}

CaseOrder EngineRerun::rerun_order() const {
  CaseOrder order = order_;
  order.logprobs = true;
  order.routing = input_.can(ASSAY_CAP_ROUTING);  // its margins tell whether experts tied
  order.top_n = std::max(order.top_n, kRerunTopN);
  if (vocab_size_ > 0) order.top_n = std::min(order.top_n, vocab_size_);
  return order;
}

Result<RerunResult> EngineRerun::run(const RerunInput& input) {
  std::map<std::string, std::string> refused;
  Tokens golden = ids_of_texts(input, &refused);
  for (const RequestRecord& record : input.golden->requests) {
    if (record.tokens) golden[record.id] = *record.tokens;
  }
  const bool none = std::all_of(input.parted.begin(), input.parted.end(),
                                [&](const PartedRequest& parted) { return golden.count(parted.id) == 0; });
  if (none && !refused.empty()) return unsupported(refused.begin()->second);
  Result<RerunResult> result = input_.can(ASSAY_CAP_FORCED_TOKENS) ? forced(input, golden) : continued(input, golden);
  if (!result) return result;
  for (const auto& [id, why] : refused) {
    RerunRequest request;
    request.id = id;
    request.not_done = why;
    result->requests.push_back(std::move(request));
  }
  return result;
}

Result<RerunResult> EngineRerun::run_own(const RerunInput& input) {
  if (!input_.can(ASSAY_CAP_FORCED_TOKENS))
    return unsupported("engine " + input_.engine->name + " cannot force tokens");
  Tokens own;
  for (const RequestRecord& record : input.actual->requests) {
    if (record.tokens) own[record.id] = *record.tokens;
  }
  return forced(input, own);
}

Result<RerunResult> EngineRerun::forced(const RerunInput& input, const Tokens& golden) {
  RerunResult rerun;
  rerun.method = "forced";
  std::vector<RequestChange> changes = own_changes();
  for (size_t i = 0; i < changes.size(); ++i) {
    if (const auto tokens = golden.find(name_of(i)); tokens != golden.end()) changes[i].forced = tokens->second;
  }
  SessionListener listener;
  listener.result = [&](const std::string& id, const assay_result& result) {
    const auto tokens = golden.find(id);
    if (tokens == golden.end()) return;
    RerunRequest request;
    request.id = id;
    request.golden_tokens = tokens->second;
    take_forced(result, find(input.parted, id) != nullptr, order_.top_n, request);
    rerun.requests.push_back(std::move(request));
  };
  listener.failed = [&](const FailedRequest& failure) {
    RerunRequest request;
    request.id = failure.id;
    request.not_done = "the engine failed on the golden's tokens: " + failure.message;
    rerun.requests.push_back(std::move(request));
  };
  const Result<SessionResult> session = run_session(input_, rerun_order(), listener, changes);
  if (!session) return session.status().with("rerun on the golden's tokens");
  return rerun;
}

}  // namespace assay::run
