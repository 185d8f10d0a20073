// Re-anchoring of engines that cannot force tokens: after each split the request is submitted again, its prompt made
// longer by the golden's tokens up to and including the one at the split.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "assay/sdk.hpp"
#include "core/run/reanchor.h"

namespace assay::run {
namespace {

using compare::RerunPosition;
using compare::RerunRequest;

// One request on its way along the golden.
struct Walk {
  size_t prompt = 0;                // index of its prompt
  size_t limit = 0;                 // tokens that the case asks for
  std::vector<int32_t> prompt_ids;  // of the request itself
  RerunRequest request;             // positions.size(): how far it came
  RequestRecord record;             // of the first run; its prompt part stays
  std::vector<double> logprobs;     // of golden tokens, as far as known
  bool over = false;
  bool end_open = false;  // the last golden token was a split: whether the engine ends after it is not known yet

  size_t positions() const { return request.positions.size(); }
  size_t left() const { return request.golden_tokens.size() - positions(); }
  bool ended() const { return over || (left() == 0 && !end_open); }

  // Takes what was generated from the present position on.
  void take(const assay_result& result) {
    const std::span<const int32_t> tokens = sdk::ids(result.tokens);
    const bool ends_early = request.golden_tokens.size() < limit;
    size_t taken = 0;
    bool split = false;
    while (taken < tokens.size() && !split && left() > 0) {
      const int32_t golden = request.golden_tokens[positions()];
      RerunPosition position = position_of(result, taken, true);
      split = tokens[taken] != golden;
      if (split) use_golden(golden, &position);
      if (position.golden_logprob) logprobs.push_back(*position.golden_logprob);
      request.positions.push_back(std::move(position));
      ++taken;
    }
    end_open = split && left() == 0 && ends_early;
    if (split) return;
    if (left() > 0) over = true;  // the engine stopped early
    if (left() == 0 && ends_early) request.further = tokens.size() - taken;
  }

  // The engine took another token: what it told is about that one.
  static void use_golden(int32_t golden, RerunPosition* position) {
    const std::optional<double> taken = std::exchange(position->golden_logprob, std::nullopt);
    const std::optional<double> logit = std::exchange(position->golden_logit, std::nullopt);
    position->golden_rank.reset();
    for (size_t rank = 0; rank < position->top.size(); ++rank) {
      if (position->top[rank].id != golden) continue;
      position->golden_logprob = position->top[rank].logprob;
      position->golden_rank = static_cast<int64_t>(rank);
      if (taken && logit) position->golden_logit = *logit + position->top[rank].logprob - *taken;
    }
  }
};

}  // namespace

Result<compare::RerunResult> EngineRerun::continued(const compare::RerunInput& input, const Tokens& golden) {
  std::map<std::string, Walk> walks;
  CaseOrder order = rerun_order();
  SessionListener listener;
  listener.result = [&](const std::string& id, const assay_result& result) {
    Walk& walk = walks[id];
    if (walk.prompt_ids.empty()) {
      const std::span<const int32_t> ids = sdk::ids(result.prompt_ids);
      walk.prompt_ids.assign(ids.begin(), ids.end());
      if (Result<RequestRecord> record = record_of(result, id); record.ok()) walk.record = *std::move(record);
    }
    walk.take(result);
  };
  listener.failed = [&](const FailedRequest& failure) {
    Walk& walk = walks[failure.id];
    walk.over = true;
    walk.request.not_done = "the engine failed on the golden's tokens: " + failure.message;
  };
  for (size_t i = 0; i < order_.prompts.size(); ++i) {
    const auto tokens = golden.find(name_of(i));
    Walk& walk = walks[name_of(i)];
    walk.prompt = i;
    walk.limit = static_cast<size_t>(std::max(0, order_.max_new_tokens));
    walk.request.id = name_of(i);
    if (tokens != golden.end()) walk.request.golden_tokens = tokens->second;
  }
  // First as the judged run was: same order, same batches. Afterwards the prefixes that are left, together.
  const std::vector<RequestChange> own = own_changes();
  Result<SessionResult> session = run_session(input_, order, listener, own);
  for (int restart = 0; session.ok() && restart < kMaxRestarts; ++restart) {
    order.prompts.clear();
    order.request_ids.clear();
    size_t new_tokens = 1;
    std::vector<RequestChange> changes;
    for (const compare::PartedRequest& parted : input.parted) {
      Walk& walk = walks[parted.id];
      if (walk.ended()) continue;
      if (walk.prompt_ids.empty()) {
        walk.over = true;
        walk.request.not_done = "the engine can neither force tokens nor tell prompt ids";
        continue;
      }
      RequestChange change = own[walk.prompt];
      change.max_new_tokens.reset();
      change.ids = walk.prompt_ids;
      const std::vector<int32_t>& tokens = walk.request.golden_tokens;
      change.ids.insert(change.ids.end(), tokens.begin(), tokens.begin() + static_cast<ptrdiff_t>(walk.positions()));
      changes.push_back(std::move(change));
      new_tokens = std::max(new_tokens, walk.left() + (tokens.size() < walk.limit ? 1 : 0));
      order.prompts.push_back(order_.prompts[walk.prompt]);
      order.request_ids.push_back(parted.id);
    }
    if (changes.empty()) break;
    order.max_new_tokens = static_cast<int32_t>(new_tokens);
    session = run_session(input_, order, listener, changes);
  }
  if (!session) return session.status().with("rerun on prefixes of the golden");
  compare::RerunResult rerun;
  rerun.method = "continued";
  for (auto& [id, walk] : walks) {
    RerunRequest& request = walk.request;
    const bool whole = walk.positions() == request.golden_tokens.size() && walk.logprobs.size() == walk.positions();
    if (whole && request.not_done.empty() && walk.record.logprobs && walk.record.tokens) {
      // The prompt's part of the first run, then the golden's tokens; lists and routing stay out, being of many runs.
      std::vector<double>& joined = *walk.record.logprobs;
      joined.resize(joined.size() - std::min(joined.size(), walk.record.tokens->size()));
      joined.insert(joined.end(), walk.logprobs.begin(), walk.logprobs.end());
      request.record.emplace();
      request.record->id = id;
      request.record->tokens = request.golden_tokens;
      request.record->prompt_ids = walk.prompt_ids;
      request.record->logprobs = std::move(joined);
    }
    rerun.requests.push_back(std::move(request));
  }
  return rerun;
}

}  // namespace assay::run
