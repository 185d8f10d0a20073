#include "backends/model/config/resolve_model.h"

#include <algorithm>

#include "backends/model/config/resolve_parts.h"
#include "backends/model/config/unsupported.h"

namespace assay::model {
namespace {

// Megatron asserts these when it loads a checkpoint, whatever was restored.
Status check_equal(const EffectiveArgs& args, const ArgRecord* checkpoint) {
  if (checkpoint == nullptr) return {};
  for (const char* name : {"num_layers", "hidden_size", "num_attention_heads"}) {
    const auto stored = checkpoint->find(name);
    const auto used = args.find(std::string_view(name));
    if (stored == checkpoint->end() || is_none(stored->second) || used == args.end()) continue;
    const std::string ours = to_text(used->second.value), theirs = to_text(stored->second);
    if (ours != theirs) {
      std::string message = name;
      message.append(" ").append(ours).append(" is given, but the checkpoint was written with ").append(theirs);
      return invalid(message.append(": give the checkpoint's value"));
    }
  }
  return {};
}

// What a checkpoint says, Megatron-LM does not restore and the command line does not give.
std::vector<std::string> not_restored(const EffectiveArgs& args, const ArgRecord* checkpoint) {
  struct Name {
    const char* stored;
    const char* used;
    const char* otherwise;
  };
  constexpr Name kNames[] = {{"layernorm_epsilon", "layernorm_epsilon", "1e-05"},
                             {"norm_epsilon", "layernorm_epsilon", "1e-05"},
                             {"qk_layernorm", "qk_layernorm", "False"},
                             {"moe_router_dtype", "moe_router_dtype", "None"},
                             {"moe_router_num_groups", "moe_router_num_groups", "None"},
                             {"moe_router_group_topk", "moe_router_group_topk", "None"},
                             {"moe_shared_expert_gate", "moe_shared_expert_gate", "False"},
                             {"bias_gelu_fusion", "bias_gelu_fusion", "True"}};
  std::vector<std::string> notes;
  if (checkpoint == nullptr) return notes;
  for (const Name& name : kNames) {
    const auto stored = checkpoint->find(name.stored);
    if (stored == checkpoint->end() || args.contains(std::string_view(name.used))) continue;
    const std::string text = to_text(stored->second);
    if (text == name.otherwise || (std::string_view(name.used) == "bias_gelu_fusion")) continue;
    notes.push_back("the checkpoint was written with " + std::string(name.stored) + " " + text +
                    ", which Megatron-LM does not restore: " + name.otherwise +
                    " is used; give the argument to change that");
  }
  return notes;
}

}  // namespace

Result<ResolvedModel> resolve_model(const ModelSources& sources) {
  const EffectiveArgs args = apply_checkpoint_args(sources.given, sources.checkpoint);
  if (Status equal = check_equal(args, sources.checkpoint); !equal.ok()) return equal;
  if (Status supported = check_supported(args, sources.checkpoint); !supported.ok()) return supported;
  ResolvedModel model;
  ModelBuilder builder(args, sources.tokenizer_vocab_size, model);
  if (Status built = builder.build(); !built.ok()) return built;
  if (Status valid = validate(model.config); !valid.ok()) return valid;
  model.notes = not_restored(args, sources.checkpoint);
  if (ArgReader(args).integer("mtp_num_layers", 0) > 0) {
    model.notes.push_back(
        "the heads of multi-token prediction (mtp_num_layers) are not used: decoding goes one token a step");
  }
  return model;
}

std::string describe(const ResolvedModel& model) {
  size_t width = 0;
  for (const FieldOrigin& field : model.origins) width = std::max(width, field.field.size());
  std::string out;
  for (const FieldOrigin& field : model.origins) {
    out += field.field + std::string(width - field.field.size(), ' ') + " = " + field.value + "  (" +
           std::string(to_string(field.origin)) + (field.source.empty() ? "" : ": " + field.source) + ")\n";
  }
  for (const std::string& note : model.notes) out += "note: " + note + "\n";
  return out;
}

}  // namespace assay::model
