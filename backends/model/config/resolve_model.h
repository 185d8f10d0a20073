// Arguments (and those of a checkpoint) -> ModelConfig, with the rules and defaults of Megatron-LM's parser.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "assay/status.h"
#include "backends/model/args_record.h"
#include "backends/model/config/effective_args.h"
#include "backends/model/config/model_config.h"

namespace assay::model {

struct ModelSources {
  const ArgRecord& given;                 // arguments written in MODEL_ARGS, by Namespace name; no defaults
  const ArgRecord* checkpoint = nullptr;  // arguments stored in the checkpoint; null: it has none
  int64_t tokenizer_vocab_size = 0;       // ids of the tokenizer, unpadded; needed unless padded_vocab_size is known
};

// Where the value of one field of ModelConfig comes from.
struct FieldOrigin {
  std::string field;  // "num_layers", "moe.topk"
  std::string value;  // as in to_json
  ArgOrigin origin = ArgOrigin::kDefault;
  std::string source;  // Namespace name of the argument: "moe_router_topk"
};

struct ResolvedModel {
  ModelConfig config;                // validated
  std::vector<FieldOrigin> origins;  // every field, in the order of to_json
  std::vector<std::string> notes;    // one line each: what the checkpoint says and Megatron-LM does not restore
};

// The checkpoint's arguments are overlaid when use_checkpoint_args is given; in any case num_layers, hidden_size and
// num_attention_heads must agree with them (kInvalid naming both). kUnsupported for what we cannot compute
// (unsupported.h), kInvalid for missing or contradicting arguments. Pure; thread-safe.
Result<ResolvedModel> resolve_model(const ModelSources& sources);

// "field = value  (origin: source)", one a line, notes last.
std::string describe(const ResolvedModel& model);

}  // namespace assay::model
