// Requests in, results out: an engine, opened for one case or one way.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "assay/golden.h"
#include "assay/plugin_abi.h"
#include "assay/status.h"
#include "core/plugin/plugin.h"
#include "core/run/engine_about.h"
#include "core/run/worker_plan.h"

namespace assay::run {

// What the engine is opened with. Borrowed for the call, except backend and model: they outlive the session.
struct EngineInput {
  const plugin::Plugin* engine = nullptr;
  const assay_backend_table* backend = nullptr;  // null: none
  void* model = nullptr;
  std::string model_config_json = "{}";
  std::string tokenizer_json = "{}";
  std::optional<uint64_t> found = {};  // capabilities of a handle that was opened; nullopt: none was yet

  bool can(uint64_t capability) const { return (found.value_or(engine->capabilities) & capability) == capability; }
};

struct FailedRequest {
  std::string id;
  StatusCode code = StatusCode::kInternal;
  std::string message;
  bool refused = false;  // when it was submitted: nothing ran for it
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
  EngineAbout about;
  uint64_t restarts = 0;  // of the program that answers, by its launcher, where the engine tells
  uint64_t batch = 0;     // most requests in one forward; of an engine that does not tell, finished by one step
};

// Told about each request as it ends, with the seconds since the call. Members may be empty.
struct SessionListener {
  std::function<void(const std::string& id, size_t tokens, double seconds)> finished = {};
  std::function<void(const FailedRequest& failure)> failed = {};
  // What the engine gave, before `finished`; valid during the call.
  std::function<void(const std::string& id, const assay_result& result)> result = {};
};

// How one request departs from its order; empty members: not at all.
struct RequestChange {
  std::vector<int32_t> ids = {};               // prompt as ids, instead of the text
  std::vector<int32_t> forced = {};            // token of generated position i < forced.size()
  std::optional<uint64_t> prompt_index = {};   // of the sampling key, instead of the prompt's place in the order
  std::optional<int32_t> max_new_tokens = {};  // instead of the order's
  bool logits = true;                          // raw logits are asked for as well
};

// An engine, open for one call after the other. Closed when destroyed. Move-only. For one thread.
class EngineSession {
 public:
  // What `input` names outlives the session. Fails with the code of an engine that cannot be opened or that about_of
  // refuses; where it lacked memory, with kInfra.
  static Result<EngineSession> open(const EngineInput& input, const std::string& options);

  // Submits every prompt and steps until nothing is pending. Outputs that the engine cannot give are not asked for. A
  // request that the engine refuses or fails is in
  // `failed`, the others finish. The call fails when the engine breaks; the session is then of no use any more.
  // `changes`: one of each prompt, or empty.
  Result<SessionResult> call(const CaseOrder& order, const SessionListener& listener,
                             const std::vector<RequestChange>& changes = {});
  // The engine's own.
  Status reset();
  const EngineAbout& about() const { return about_; }

 private:
  struct Closer {
    const assay_engine_table* table;
    void operator()(void* engine) const { table->close(engine); }
  };

  EngineSession(std::string name, const assay_engine_table* table, std::unique_ptr<void, Closer> engine,
                EngineAbout about)
      : name_(std::move(name)), table_(table), engine_(std::move(engine)), about_(std::move(about)) {}

  std::string name_;
  const assay_engine_table* table_;
  std::unique_ptr<void, Closer> engine_;
  EngineAbout about_;
  uint64_t next_id_ = 0;  // of the next request: ids ascend over calls
};

// Opens the engine with the order's options, calls it once, closes it.
Result<SessionResult> run_session(const EngineInput& input, const CaseOrder& order, const SessionListener& listener,
                                  const std::vector<RequestChange>& changes = {});

}  // namespace assay::run
