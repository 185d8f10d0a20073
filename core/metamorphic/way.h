// One way of running requests, and who runs it.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "assay/golden.h"
#include "assay/status.h"
#include "core/compare/rerun.h"

namespace assay::metamorphic {

struct Ask {
  std::string id;             // in results; unique within the way
  std::string text;           // prompt; ignored when ids is not empty
  std::vector<int32_t> ids;   // prompt as ids
  uint64_t prompt_index = 0;  // of the sampling key: the same in both ways
  int32_t new_tokens = 1;
  bool judged = true;  // false: it only keeps others company, or is a part that is judged with another
};

// Requests that are submitted together and run until none is pending.
struct Call {
  std::vector<Ask> asks;
  bool reset_before = false;  // the engine's reset is called first
};

// Calls one after the other on one engine, which is opened for this way.
struct Way {
  std::string name;                                    // "batches of 7"
  std::string engine;                                  // plugin; empty: that of the case
  std::map<std::string, std::string> engine_options;   // member -> JSON text, over the case's; "null" takes it out
  std::map<std::string, std::string> backend_options;  // over those of the run; not empty: the model is loaded anew
  bool resaved = false;                                // the model's weights are written anew and loaded from there
  std::vector<Call> calls;
  bool drawn = false;  // tokens are drawn from the whole vocabulary with the case's seed, whatever the case says
  bool prompt_logprobs = true;  // false: outputs of generated tokens alone, as prefix caches need it; no routing
};

// What the engine says happened to a request (assay_result.extra, engine_counters); 0 where it does not say.
struct Counters {
  bool known = false;  // the engine gave any
  uint64_t batch = 0;  // most requests in one forward with this one, itself included
  uint64_t steps = 0;
  uint64_t chunks = 0;
  uint64_t cached_tokens = 0;
  uint64_t recomputed_tokens = 0;
  uint64_t preemptions = 0;
  uint64_t restarts = 0;  // of the program that answered, by its launcher
};
// Of a record that an engine made; members that are no numbers count as 0.
Counters counters_of(const RequestRecord& record);

// A request that the engine refused or failed.
struct FailedAsk {
  std::string id;
  StatusCode code = StatusCode::kInternal;
  std::string message;
};

struct WayResult {
  std::vector<RequestRecord> records;  // ascending id, of all calls
  std::vector<FailedAsk> failed;       // not among the records
  std::string engine;                  // plugin that ran it
  std::string device;                  // of the model
  std::string checkpoint;              // folder the weights came from; empty: no model
  uint64_t determinism = 0;            // ASSAY_CAP_L1 to L3 that engine and model declare

  const RequestRecord* find(const std::string& id) const;  // null: none
};

// What this room needs of an engine, implemented by whoever holds one (core/run). For one thread.
class Laboratory {
 public:
  virtual ~Laboratory() = default;

  // ASSAY_CAP_* of an engine; nullopt: there is no such engine. An empty `engine`: the case's.
  virtual std::optional<uint64_t> capabilities(const std::string& engine) const = 0;
  // True when the engine's options schema, or that of the backend, has this member.
  virtual bool has_engine_option(const std::string& engine, const std::string& member) const = 0;
  virtual bool has_backend_option(const std::string& member) const = 0;
  // kNotFound where there is no such engine, kUnsupported where something cannot be done here, with the reason; else
  // the code of an engine that cannot be opened or breaks. A request that fails is in the result.
  virtual Result<WayResult> run(const Way& way) = 0;
  // Runs a way of one call again (core/compare/rerun.h). Null: cannot be done.
  virtual std::unique_ptr<compare::Rerun> rerun(const Way&) { return nullptr; }
};

}  // namespace assay::metamorphic
