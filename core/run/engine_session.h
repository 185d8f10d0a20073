// Requests in, results out: one engine, opened for one case.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "assay/golden.h"
#include "assay/plugin_abi.h"
#include "assay/status.h"
#include "core/plugin/plugin.h"
#include "core/run/worker_plan.h"

namespace assay::run {

// What the engine is opened with. Borrowed for the call, except backend and model: they outlive the session.
struct EngineInput {
  const plugin::Plugin* engine = nullptr;
  const assay_backend_table* backend = nullptr;  // null: none
  void* model = nullptr;
  std::string model_config_json = "{}";
  std::string tokenizer_json = "{}";
};

struct FailedRequest {
  std::string id;
  StatusCode code = StatusCode::kInternal;
  std::string message;
};

// What came of the requests of one case.
struct SessionResult {
  std::vector<RequestRecord> records;  // ascending id
  std::vector<FailedRequest> failed;
  uint64_t prompt_tokens = 0;
  uint64_t generated_tokens = 0;
  uint64_t prefill_tokens = 0;
  double prefill_seconds = 0;  // batches one after the other: of a batch, the longest counts
  double decode_seconds = 0;
  double first_token_seconds = 0;  // from the call to the first token event; 0: none came
  uint64_t batch = 0;              // most requests that were finished by one step
};

// Told about each request as it ends, with the seconds since the call. Members may be empty.
struct SessionListener {
  std::function<void(const std::string& id, size_t tokens, double seconds)> finished = {};
  std::function<void(const FailedRequest& failure)> failed = {};
  // What the engine gave, before `finished`; valid during the call.
  std::function<void(const std::string& id, const assay_result& result)> result = {};
};

// How one request departs from its order; empty lists: not at all.
struct RequestChange {
  std::vector<int32_t> ids = {};     // prompt as ids, instead of the text
  std::vector<int32_t> forced = {};  // token of generated position i < forced.size()
};

// Opens the engine, submits every prompt, steps until nothing is pending, closes it. A request that the engine refuses
// or fails is in `failed`, the others finish. The call fails when the engine cannot be opened (its code) or breaks.
// `changes`: one of each prompt, or empty; with them, raw logits are asked for as well.
Result<SessionResult> run_session(const EngineInput& input, const CaseOrder& order, const SessionListener& listener,
                                  const std::vector<RequestChange>& changes = {});

}  // namespace assay::run
