#include "tools/make_checkpoint/spec_options.h"

#include <fmt/format.h>

#include <boost/program_options.hpp>
#include <charconv>
#include <cmath>

namespace assay::tools {
namespace {

namespace po = boost::program_options;
using model::CheckpointSpec;
using model::ModelConfig;

po::options_description describe() {
  po::options_description all;
  const auto text = [](const char* value) { return po::value<std::string>()->default_value(value); };
  const auto number = [](int value) { return po::value<int>()->default_value(value); };
  const auto real = [](double value) { return po::value<double>()->default_value(value); };
  auto add = all.add_options();
  add("help,h", "")("output,o", po::value<std::string>(), "");
  add("layers", number(2), "")("hidden", number(64), "")("heads", number(4), "")("groups", number(0), "");
  add("kv-channels", number(0), "")("ffn", number(0), "")("vocab", number(1024), "");
  add("positions", text("rope"), "")("max-positions", number(2048), "")("rotary-base", real(10000), "");
  add("rotary-percent", real(1), "")("rotary-interleaved", "");
  add("norm", text("RMSNorm"), "")("norm-1p", "")("qk-layernorm", "")("activation", text("swiglu"), "");
  add("bias", "")("qkv-bias", "")("tied", "");
  add("experts", number(0), "")("topk", number(2), "")("moe-ffn", number(0), "")("shared", number(0), "");
  add("shared-gate", "")("router", text("softmax"), "")("pre-softmax", "")("expert-bias", "")("router-bias", "");
  add("router-groups", number(0), "")("router-group-topk", number(0), "")("router-scale", real(1), "");
  add("moe-layer-freq", text("1"), "");
  add("dtype", text("bf16"), "")("bf16-args", "")("seed", text("1"), "");
  add("std", real(0.02), "")("residual-std", po::value<double>(), "")("te-names", "")("per-layer", "");
  add("files", number(1), "")("chunks", po::value<std::vector<std::string>>()->composing(), "");
  add("no-default-chunks", "")("common-pt", "")("align", "")("misalign", number(-1), "")("reversed-strides", "");
  add("iteration", number(1), "")("release", "");
  return all;
}

// By hand: one option a line would not fit a screen. The test checks that no option is missing.
constexpr const char* kHelp =
    R"(make_checkpoint -o DIR [options]: writes a torch_dist checkpoint with seeded weights (DIR/iter_NNNNNNN)

model      --layers 2 --hidden 64 --heads 4 --groups (heads) --kv-channels (hidden/heads) --ffn (4*hidden)
           --vocab 1024 (padded) --tied (no output layer) --bias (linear layers) --qkv-bias
positions  --positions rope|learned_absolute|none --max-positions 2048 --rotary-base 10000 --rotary-percent 1
           --rotary-interleaved
norm, MLP  --norm RMSNorm|LayerNorm --norm-1p (gammas around 0) --qk-layernorm
           --activation swiglu|squared_relu|gelu|gelu_erf
experts    --experts 0 (dense) --topk 2 --moe-ffn (ffn) --shared 0 (width) --shared-gate
           --moe-layer-freq 1 (every n-th layer, or 0,1,1: keys per layer)
router     --router softmax|sigmoid --pre-softmax --expert-bias --router-bias --router-groups 0
           --router-group-topk 0 --router-scale 1
weights    --dtype bf16|fp16|fp32 --bf16-args (argument bf16 is True whatever the dtype) --seed 1 --std 0.02
           --residual-std (std; of attention's projection and of second MLP layers)
keys       --te-names (pre_mlp_layernorm before experts) --per-layer (decoder.layers.<i>., no layer axis)
storage    --files 1 (written side by side: as many as there are cores for a large model)
           --chunks GLOB:AXIS:COUNT (repeatable, later ones win; axis -1: the last)
           --no-default-chunks (else: one a layer, an expert, the gate rows, the up rows)
           --align | --misalign R (tensor bytes at residue 0 | R modulo 64) --reversed-strides
arguments  --common-pt (else a common_state object) --iteration 1 | --release
           --help, -h  --output, -o
)";

// The value whose name the option has.
template <class T>
Status choose(const po::variables_map& map, const char* option, const std::vector<std::pair<const char*, T>>& names,
              T& out) {
  const std::string value = map[option].as<std::string>();
  std::string known;
  for (const auto& [name, candidate] : names) {
    if (value == name) {
      out = candidate;
      return {};
    }
    known += known.empty() ? name : std::string(", ") + name;
  }
  return invalid(fmt::format("--{} {}: expected one of {}", option, value, known));
}

template <class T>
bool parse_number(std::string_view text, T& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size();
}

Status fill_weights(const po::variables_map& map, CheckpointSpec& spec) {
  const std::string seed = map["seed"].as<std::string>();
  if (!parse_number(seed, spec.seed)) {
    return invalid(fmt::format("--seed {}: expected a whole number from 0 to {}", seed, UINT64_MAX));
  }
  spec.std = map["std"].as<double>();
  if (map.count("residual-std") > 0) spec.residual_std = map["residual-std"].as<double>();
  for (const auto& [name, value] : {std::pair("std", spec.std), {"residual-std", spec.residual_std.value_or(0)}}) {
    if (!std::isfinite(value) || value < 0) {
      return invalid(fmt::format("--{} {}: expected a number of at least 0", name, value));
    }
  }
  return {};
}

Status fill_storage(const po::variables_map& map, model::WriteOptions& write) {
  constexpr int kMostFiles = 100000;
  constexpr int kMostIteration = 9999999;  // seven digits in the folder's name
  const int iteration = map["iteration"].as<int>();
  write.files = map["files"].as<int>();
  if (write.files < 1 || write.files > kMostFiles) {
    return invalid(fmt::format("--files {}: expected 1 to {}", write.files, kMostFiles));
  }
  if (iteration < 0 || iteration > kMostIteration) {
    return invalid(fmt::format("--iteration {}: expected 0 to {}, or --release", iteration, kMostIteration));
  }
  if (map.count("align") > 0 && !map["misalign"].defaulted())
    return invalid("--align and --misalign: give one of them");
  write.common_pt = map.count("common-pt") > 0;
  write.residue = map.count("align") > 0 ? 0 : map["misalign"].as<int>();
  write.reversed_strides = map.count("reversed-strides") > 0;
  write.iteration = map.count("release") > 0 ? -1 : iteration;
  return {};
}

Status parse_pattern(const std::string& text, ModelConfig& config, bool& per_layer) {
  config.moe_layers.assign(static_cast<size_t>(std::max(config.num_layers, 0)), false);
  if (config.moe.experts == 0) return {};
  int frequency = 0;
  if (parse_number(text, frequency) && frequency >= 1) {
    for (size_t i = 0; i < config.moe_layers.size(); ++i) config.moe_layers[i] = static_cast<int>(i) % frequency == 0;
    per_layer = per_layer || frequency > 1;
    return {};
  }
  std::vector<bool> layers;
  for (size_t at = 0; at <= text.size(); at += 2) {
    const bool digit = at < text.size() && (text[at] == '0' || text[at] == '1');
    if (!digit || (at + 1 < text.size() && text[at + 1] != ',')) {
      return invalid(fmt::format("--moe-layer-freq {}: expected a number or 0,1,1,...", text));
    }
    layers.push_back(text[at] == '1');
    if (at + 1 >= text.size()) break;
  }
  if (layers.size() != config.moe_layers.size()) {
    return invalid(fmt::format("--moe-layer-freq {}: {} layers, expected {}", text, layers.size(), config.num_layers));
  }
  config.moe_layers = layers;
  per_layer = true;
  return {};
}

Status parse_chunks(const po::variables_map& map, CheckpointSpec& spec) {
  if (map.count("chunks") == 0) return {};
  for (const std::string& text : map["chunks"].as<std::vector<std::string>>()) {
    const size_t last = text.rfind(':');
    const size_t first = last == std::string::npos || last == 0 ? last : text.rfind(':', last - 1);
    model::ChunkRule rule;
    if (first == std::string::npos || last == 0 ||
        !parse_number(std::string_view(text).substr(first + 1, last - first - 1), rule.axis) ||
        !parse_number(std::string_view(text).substr(last + 1), rule.count) || rule.count < 1) {
      return invalid(fmt::format("--chunks {}: expected GLOB:AXIS:COUNT", text));
    }
    rule.glob = text.substr(0, first);
    spec.chunks.push_back(rule);
  }
  return {};
}

Status fill_model(const po::variables_map& map, ModelConfig& config, bool& per_layer) {
  const auto number = [&](const char* name) { return map[name].as<int>(); };
  config.num_layers = number("layers");
  config.hidden_size = number("hidden");
  config.num_attention_heads = number("heads");
  config.num_query_groups = number("groups") > 0 ? number("groups") : config.num_attention_heads;
  config.kv_channels = number("kv-channels");
  if (config.kv_channels == 0 && config.num_attention_heads > 0) {
    config.kv_channels = config.hidden_size / config.num_attention_heads;
  }
  config.ffn_hidden_size = number("ffn") > 0 ? number("ffn") : 4 * config.hidden_size;
  config.vocab_size = number("vocab");
  config.max_position_embeddings = number("max-positions");
  config.rotary_base = map["rotary-base"].as<double>();
  config.rotary_percent = map["rotary-percent"].as<double>();
  config.rotary_interleaved = map.count("rotary-interleaved") > 0;
  config.norm_gamma_plus_one = map.count("norm-1p") > 0;
  config.qk_layernorm = map.count("qk-layernorm") > 0;
  config.linear_bias = map.count("bias") > 0;
  config.qkv_bias = map.count("qkv-bias") > 0;
  config.tied_embeddings = map.count("tied") > 0;
  model::MoeConfig& moe = config.moe;
  moe.experts = number("experts");
  moe.topk = number("topk");
  moe.ffn_hidden_size = number("moe-ffn") > 0 ? number("moe-ffn") : config.ffn_hidden_size;
  moe.shared_ffn_hidden_size = number("shared");
  moe.shared_gate = map.count("shared-gate") > 0;
  moe.pre_softmax = map.count("pre-softmax") > 0;
  moe.expert_bias = map.count("expert-bias") > 0;
  moe.router_bias = map.count("router-bias") > 0;
  moe.groups = number("router-groups");
  moe.group_topk = number("router-group-topk");
  moe.scaling_factor = map["router-scale"].as<double>();
  return parse_pattern(map["moe-layer-freq"].as<std::string>(), config, per_layer);
}

Status fill_names(const po::variables_map& map, CheckpointSpec& spec) {
  ModelConfig& config = spec.model;
  using enum model::Activation;
  using enum model::Positions;
  Status status = choose<model::Positions>(
      map, "positions", {{"learned_absolute", kLearnedAbsolute}, {"rope", kRope}, {"none", kNone}}, config.positions);
  if (!status.ok()) return status;
  status = choose<model::Norm>(
      map, "norm", {{"LayerNorm", model::Norm::kLayerNorm}, {"RMSNorm", model::Norm::kRmsNorm}}, config.norm);
  if (!status.ok()) return status;
  status = choose<model::Activation>(
      map, "activation",
      {{"swiglu", kSwiglu}, {"squared_relu", kSquaredRelu}, {"gelu", kGeluTanh}, {"gelu_erf", kGeluErf}},
      config.activation);
  if (!status.ok()) return status;
  status = choose<model::RouterScore>(
      map, "router", {{"softmax", model::RouterScore::kSoftmax}, {"sigmoid", model::RouterScore::kSigmoid}},
      config.moe.score);
  if (!status.ok()) return status;
  status = choose<model::Dtype>(
      map, "dtype",
      {{"bf16", model::Dtype::kBfloat16}, {"fp16", model::Dtype::kFloat16}, {"fp32", model::Dtype::kFloat32}},
      spec.dtype);
  const bool bf16 = spec.dtype == model::Dtype::kBfloat16 || map.count("bf16-args") > 0;
  config.arithmetic = bf16 ? model::Arithmetic::kBf16 : model::Arithmetic::kFp32;
  return status;
}

}  // namespace

std::string help_text() { return kHelp; }

std::vector<std::string> option_names() {
  std::vector<std::string> names;
  const po::options_description all = describe();
  for (const auto& option : all.options()) names.push_back(option->long_name());
  return names;
}

Result<Invocation> parse_command_line(int argc, const char* const* argv) {
  po::variables_map map;
  try {
    const int style = po::command_line_style::default_style & ~po::command_line_style::allow_guessing;
    po::store(po::command_line_parser(argc, argv).options(describe()).style(style).positional({}).run(), map);
  } catch (const po::error& error) {
    return invalid(error.what());
  }
  Invocation out;
  out.help = map.count("help") > 0;
  if (out.help) return out;
  if (map.count("output") > 0) out.folder = map["output"].as<std::string>();
  if (out.folder.empty()) return invalid("no --output DIR");
  CheckpointSpec& spec = out.spec;
  spec.te_names = map.count("te-names") > 0;
  spec.per_layer_keys = map.count("per-layer") > 0;
  spec.default_chunks = map.count("no-default-chunks") == 0;
  if (Status s = fill_weights(map, spec); !s.ok()) return s;
  if (Status s = fill_storage(map, spec.write); !s.ok()) return s;
  if (Status s = fill_names(map, spec); !s.ok()) return s;
  if (Status s = fill_model(map, spec.model, spec.per_layer_keys); !s.ok()) return s;
  if (Status s = parse_chunks(map, spec); !s.ok()) return s;
  return out;
}

}  // namespace assay::tools
