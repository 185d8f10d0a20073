// What one worker is told to do: plain data, carried as one JSON file.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "assay/status.h"
#include "core/metamorphic/relation.h"
#include "core/plugin/search_path.h"

namespace assay::run {

// Everything of one case that needs no model: made by the planner, used by the worker.
struct CaseOrder {
  std::string id;                            // unique within the run; its output folder below cases/
  std::string name;                          // of the case
  std::string dir;                           // its folder
  std::vector<std::string> metrics;          // METRICS; empty: none
  std::map<std::string, double> tolerances;  // ASSAY.tolerance
  bool known_completion = false;             // ASSAY.golden
  std::vector<std::string> known_sources;    // ASSAY.known_completion, as paths that exist or were asked for
  std::string engine_options;                // JSON object for the engine
  std::vector<std::string> prompts;
  uint64_t first_id = 0;                 // of the requests in results
  std::string recorded;                  // file whose requests are asked for instead of `prompts`; empty: none
  std::vector<std::string> request_ids;  // id of each prompt in results; empty: first_id, first_id + 1, ...
  int32_t max_new_tokens = 0;
  int32_t top_n = 0;
  bool logprobs = false;
  bool routing = false;
  double temperature = 1;
  int32_t top_k = 0;
  double top_p = 0;
  uint64_t seed = 0;
  int repeats = 1;       // how often the case is run
  int first_repeat = 1;  // the first one that this worker runs; earlier ones were run by others
  int passes = 1;        // --inference-repeat-n: of each repeat, to measure throughput; the last one's results count
  int output_every = 1;  // results keep requests 0, output_every, 2 * output_every ... and the last one
  bool record_quantities = false;     // results get throughput, memory and prefill counts, listed in METRICS or not
  std::string output_path;            // --output-path, written besides actual.json; empty: none
  bool deterministic = false;         // --deterministic-mode: engine and model have to hold L1 to L3
  std::string golden;                 // the file that judges; empty: that of `dir`
  std::string uncompared;             // train::why_uncompared: the word that keeps it from being judged; empty: it is
  std::vector<std::string> training;  // (repeats) train::CasePlan as JSON; empty: no training case
  std::string relation;  // metamorphic::RelationInfo::name: judged by that, without a golden; empty: golden
  metamorphic::Parameters metamorphic;  // for a relation
};

struct WorkerPlan {
  std::string run_id;            // of the run, for provenance
  std::string assay_version;     // "": not known
  bool digest_weights = false;   // provenance gets the digests of weights and tokenizer, whatever the verdict
  std::string worker;            // "w000"
  std::string device;            // "CUDA_VISIBLE_DEVICES=1": what binds it to a device, for the record; empty: nothing
  std::string output;            // output folder of the run
  std::string heartbeat;         // file that the runner keeps changing, see leash.h; empty: the runner is the parent
  double heartbeat_seconds = 0;  // without a change after which the runner is taken for dead
  std::string engine;            // plugin name
  std::string backend;           // plugin name; empty: the engine needs none
  std::string backend_options;   // JSON object
  std::string model;  // JSON {"config": model::to_json, "checkpoint": path, "tokenizer": {...}}; "{}": no model
  std::string environment_name;
  std::string platform;
  plugin::SearchOptions plugins;
  std::vector<CaseOrder> cases;
};

// Ill-formed UTF-8 becomes U+FFFD.
std::string to_json(const WorkerPlan& plan);

// Fails with kInvalid on anything that to_json of this build did not write.
Result<WorkerPlan> parse_worker_plan(const std::string& text);

}  // namespace assay::run
