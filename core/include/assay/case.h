// A test case as read from its directory: plain data, before any substitution and before arguments are interpreted.
// Copyable and free of pointers; safe to share between threads once built.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "assay/compat.h"
#include "assay/status.h"
#include "assay/waiver.h"

namespace assay {

// Place in model_config.yaml, both counted from 1; 0: unknown.
struct SourcePlace {
  int line = 0;
  int column = 0;
};

// One entry of MODEL_ARGS*. `text` is the scalar as YAML reads it after unquoting, its spelling kept ("1e-3", "null",
// "true"). A list has `is_list` and its items instead.
struct ModelArg {
  std::string key;  // with its dashes: "--num-layers"
  std::string text;
  std::vector<std::string> items;
  bool is_list = false;
  bool plain = true;  // written without quotes and not as a block: only a plain `true` can be YAML's true
  SourcePlace place;  // of the value
};

// MODEL_ARGS or one of MODEL_ARGS_2, MODEL_ARGS_3, ...: entries in PyYAML's order (merged keys first, a repeated key
// keeps its first position and its last value).
struct ModelArgs {
  std::string name = "MODEL_ARGS";
  bool present = false;  // false: absent or null
  std::vector<ModelArg> entries;
};

struct EnvVar {
  std::string name;
  std::string value;  // null reads as ""
  SourcePlace place;
};

// A golden file found in the case folder: golden_values_<environment>_<platform>.json.
struct GoldenFile {
  std::string file;         // name inside the folder
  std::string environment;  // "dev", "lts"
  std::string platform;     // "dgx_h100", "any"
};

inline constexpr int32_t kMostWorkersPerDevice = 64;

enum class GoldenKind { kCharacteristic, kKnownCompletion };

// ASSAY.metamorphic: the case is judged by relations between runs of its own instead of a golden. Absent numbers leave
// the defaults of metamorphic::Parameters.
struct MetamorphicBlock {
  std::vector<std::string> relations = {};  // names; empty: all
  std::vector<int32_t> batches = {};        // empty: default
  std::vector<int32_t> chunks = {};         // empty: default
  std::vector<int32_t> threads = {};        // empty: default
  std::optional<int32_t> prompt_tokens = {};
  std::optional<int32_t> new_tokens = {};
};

// The optional block ASSAY; an absent optional means that the block does not say.
struct AssayBlock {
  bool present = false;
  std::optional<std::string> engine;
  std::optional<std::string> backend;
  std::optional<std::string> script;  // of Megatron-LM that the case is for: gpt_dynamic_inference.py
  GoldenKind golden = GoldenKind::kCharacteristic;
  std::vector<std::string> known_completion;  // source text files, in order; relative ones as written
  std::map<std::string, double> tolerance;    // metric -> absolute tolerance, >= 0
  std::optional<double> timeout_s;            // > 0, seconds
  std::optional<uint64_t> memory_limit;       // > 0, bytes
  std::optional<int32_t> workers_per_device;  // 1 to kMostWorkersPerDevice; absent: 1
  std::vector<std::string> requirements;      // ASSAY.requires: variables, devices or paths, as written
  std::vector<std::string> tags;
  std::vector<Waiver> waivers;
  std::optional<MetamorphicBlock> metamorphic;
};

struct TestCase {
  std::string name;              // unique in one discovery: path below the discovered root, "moe/moe_10m_licences_b1"
  std::string dir;               // folder as reached from the given path
  std::string config;            // path of model_config.yaml
  std::string config_text = {};  // what it holds
  std::string model;             // name of the parent folder: "moe"

  std::string test_type;  // as written; empty: absent
  std::string mode = "pretraining";
  std::string launcher = "torchrun";
  std::string test_evaluation = "pass";
  std::vector<EnvVar> env_vars;
  ModelArgs model_args;
  std::vector<ModelArgs> further_model_args;        // MODEL_ARGS_2, ... in ascending number
  std::vector<EnvVar> model_env_vars;               // MODEL_ENV_VARS: "MODEL_ARGS_2.GPUS_PER_NODE"
  std::optional<std::vector<std::string>> metrics;  // absent: no key; empty: null or []
  bool metrics_is_null = false;                     // METRICS: null (kept apart from [])
  CompatMetrics written_metrics;                    // METRICS as Megatron-LM's comparator sees them
  std::string before_script;                        // empty: absent or null
  std::string after_script;
  AssayBlock assay;

  std::vector<GoldenFile> goldens;  // sorted by file name
  std::vector<std::string> notes;   // one line each: unknown top-level keys, duplicate keys, ...
  Status error;                     // syntax or schema; the other fields then hold what could be read
};

}  // namespace assay
