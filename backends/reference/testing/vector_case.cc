#include "backends/reference/testing/vector_case.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

#include "backends/model/checkpoint/checkpoint.h"
#include "backends/model/tokenizer/tokenizer.h"

namespace assay::testing {
namespace {

using Arguments = std::map<std::string, std::string>;

Arguments read_arguments(const std::string& path) {
  Arguments arguments;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    const size_t colon = line.find(": ");
    if (line.starts_with("  --") && colon != std::string::npos) {
      arguments[line.substr(4, colon - 4)] = line.substr(colon + 2);
    }
  }
  return arguments;
}

class Reader {
 public:
  explicit Reader(const Arguments& arguments) : arguments_(arguments) {}
  bool has(const std::string& name) const { return arguments_.contains(name); }
  std::string text(const std::string& name, const std::string& fallback = "") const {
    const auto found = arguments_.find(name);
    return found == arguments_.end() ? fallback : found->second;
  }
  int number(const std::string& name, int fallback) const { return has(name) ? std::stoi(text(name)) : fallback; }
  double real(const std::string& name, double fallback) const { return has(name) ? std::stod(text(name)) : fallback; }

 private:
  const Arguments& arguments_;
};

model::MoeConfig moe_config(const Reader& args, int ffn) {
  model::MoeConfig moe;
  moe.experts = args.number("num-experts", 0);
  moe.topk = args.number("moe-router-topk", 2);
  moe.ffn_hidden_size = args.number("moe-ffn-hidden-size", ffn);
  moe.shared_ffn_hidden_size = args.number("moe-shared-expert-intermediate-size", 0);
  moe.shared_gate = args.has("moe-shared-expert-gate");
  const bool sigmoid = args.text("moe-router-score-function") == "sigmoid";
  moe.score = sigmoid ? model::RouterScore::kSigmoid : model::RouterScore::kSoftmax;
  moe.pre_softmax = args.has("moe-router-pre-softmax");
  moe.expert_bias = args.has("moe-router-enable-expert-bias");
  moe.groups = args.number("moe-router-num-groups", 0);
  moe.group_topk = args.number("moe-router-group-topk", 0);
  moe.scaling_factor = args.real("moe-router-topk-scaling-factor", 1);
  moe.router_fp32 = args.has("moe-router-dtype");
  moe.router_bias = !args.has("disable-bias-linear");
  return moe;
}

// "2": every second layer; "([0]+[1]*2)": a Python list of that form; absent: all.
std::vector<bool> moe_pattern(const std::string& text, int layers) {
  std::vector<bool> pattern(static_cast<size_t>(layers), true);
  if (text.empty()) return pattern;
  if (text.find('[') == std::string::npos) {
    for (size_t i = 0; i < pattern.size(); ++i) pattern[i] = i % static_cast<size_t>(std::stoi(text)) == 0;
    return pattern;
  }
  pattern.clear();
  for (size_t i = text.find('['); i != std::string::npos; i = text.find('[', i + 1)) {
    const size_t close = text.find(']', i);
    std::vector<bool> part;
    for (size_t k = i; k < close; ++k) {
      if (text[k] == '0' || text[k] == '1') part.push_back(text[k] == '1');
    }
    const int times = close + 1 < text.size() && text[close + 1] == '*' ? std::stoi(text.substr(close + 2)) : 1;
    for (int t = 0; t < times; ++t) pattern.insert(pattern.end(), part.begin(), part.end());
  }
  return pattern;
}

model::ModelConfig model_config(const Reader& args) {
  model::ModelConfig config;
  config.num_layers = args.number("num-layers", 0);
  config.hidden_size = args.number("hidden-size", 0);
  config.num_attention_heads = args.number("num-attention-heads", 0);
  config.num_query_groups =
      args.has("group-query-attention") ? args.number("num-query-groups", 1) : config.num_attention_heads;
  config.kv_channels = args.number("kv-channels", config.hidden_size / config.num_attention_heads);
  const bool swiglu = args.has("swiglu");
  config.ffn_hidden_size =
      args.number("ffn-hidden-size", swiglu ? config.hidden_size * 8 / 3 / 64 * 64 : 4 * config.hidden_size);
  const int multiple = args.number("make-vocab-size-divisible-by", 128);
  config.vocab_size = (args.number("vocab-size", 0) + multiple - 1) / multiple * multiple;
  config.max_position_embeddings = args.number("max-position-embeddings", 0);
  const std::string positions = args.text("position-embedding-type", "learned_absolute");
  config.positions = positions == "rope"   ? model::Positions::kRope
                     : positions == "none" ? model::Positions::kNone
                                           : model::Positions::kLearnedAbsolute;
  config.rotary_base = args.real("rotary-base", 10000);
  config.rotary_percent = args.real("rotary-percent", 1);
  config.rotary_interleaved = args.has("rotary-interleaved");
  config.norm = args.text("normalization") == "RMSNorm" ? model::Norm::kRmsNorm : model::Norm::kLayerNorm;
  config.norm_epsilon = args.real("norm-epsilon", 1e-5);
  config.norm_gamma_plus_one = args.has("apply-layernorm-1p");
  config.qk_layernorm = args.has("qk-layernorm");
  config.linear_bias = !args.has("disable-bias-linear");
  config.activation = swiglu                                                   ? model::Activation::kSwiglu
                      : args.has("squared-relu")                               ? model::Activation::kSquaredRelu
                      : config.linear_bias && !args.has("no-bias-gelu-fusion") ? model::Activation::kGeluTanh
                                                                               : model::Activation::kGeluErf;
  config.qkv_bias = args.has("add-qkv-bias");
  config.tied_embeddings = !args.has("untie-embeddings-and-output-weights");
  config.arithmetic = args.has("bf16") ? model::Arithmetic::kBf16 : model::Arithmetic::kFp32;
  config.moe_layers.assign(static_cast<size_t>(config.num_layers), false);
  if (args.has("num-experts")) {
    config.moe_layers = moe_pattern(args.text("moe-layer-freq"), config.num_layers);
    config.moe = moe_config(args, config.ffn_hidden_size);
  }
  return config;
}

std::string under(const std::string& root, const std::string& path) {
  const std::string variable = "${CHECKPOINT_LOAD_PATH}";
  return path.starts_with(variable) ? root + path.substr(variable.size()) : path;
}

Result<std::vector<VectorRequest>> read_requests(const std::string& folder, const model::Tokenizer& tokenizer) {
  std::vector<VectorRequest> requests;
  std::ifstream file(folder + "/golden_values_dev_dgx_h200.json");
  const auto golden = nlohmann::json::parse(file, nullptr, false);
  if (!golden.is_object()) return invalid(folder + ": golden is not a JSON object");
  for (size_t i = 0; i < golden.size(); ++i) {
    const auto& entry = golden.at(std::to_string(i));
    VectorRequest request;
    auto ids = model::encode_prompt(tokenizer, entry.at("input_prompt").get<std::string>());
    if (!ids) return ids.status();
    request.prompt = *ids;
    request.generated = entry.at("generated_tokens").get<std::vector<int32_t>>();
    request.logprobs = entry.at("logprobs").get<std::vector<double>>();
    requests.push_back(std::move(request));
  }
  return requests;
}

}  // namespace

std::vector<std::string> list_cases(const std::string& root, const std::string& suffix) {
  std::vector<std::string> names;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(root + "/cases", error)) {
    const std::string name = entry.path().filename();
    if (name.ends_with(suffix)) names.push_back(name);
  }
  std::sort(names.begin(), names.end());
  return names;
}

Result<VectorCase> read_case(const std::string& root, const std::string& name) {
  const std::string folder = root + "/cases/" + name;
  const Arguments arguments = read_arguments(folder + "/model_config.yaml");
  const Reader args(arguments);
  if (args.has("use-checkpoint-args")) return unsupported(name + " takes its arguments from the checkpoint");
  VectorCase result;
  result.name = name;
  result.config = model_config(args);
  result.checkpoint = under(root, args.text("load"));
  model::TokenizerSpec spec;
  spec.type = args.text("tokenizer-type");
  spec.model = under(root, args.text("tokenizer-model"));
  spec.pattern = args.text("tiktoken-pattern", "v2");
  spec.vocab_size = args.number("vocab-size", 0);
  spec.num_special = args.number("tiktoken-num-special-tokens", 1000);
  auto tokenizer = model::open_tokenizer(spec);
  if (!tokenizer) return tokenizer.status();
  auto requests = read_requests(folder, **tokenizer);
  if (!requests) return requests.status();
  result.requests = std::move(*requests);
  return result;
}

Result<VectorResult> run_case(backend::Model& model, const VectorCase& vector_case, uint32_t chunk) {
  VectorResult result;
  for (const VectorRequest& request : vector_case.requests) {
    std::vector<int32_t> ids = request.prompt;
    ids.insert(ids.end(), request.generated.begin(), request.generated.end());
    auto spec = assay_cache_spec{sizeof(assay_cache_spec), 16, static_cast<uint32_t>(ids.size() / 16 + 1), 0};
    auto cache = model.make_cache(spec);
    if (!cache) return cache.status();
    (*cache)->block_size = spec.block_size;
    (*cache)->block_count = spec.block_count;
    std::vector<int32_t> blocks;
    for (uint32_t b = 0; b < spec.block_count; ++b) blocks.push_back(static_cast<int32_t>(spec.block_count - 1 - b));
    std::vector<float> logprobs(ids.size());
    std::vector<int32_t> argmax(ids.size());
    std::vector<int32_t> targets(ids.begin() + 1, ids.end());
    targets.push_back(-1);
    for (uint32_t start = 0; start < ids.size(); start += chunk) {
      assay_run run{};
      run.ids = &ids[start];
      run.count = std::min(chunk, static_cast<uint32_t>(ids.size()) - start);
      run.start = start;
      run.blocks = blocks.data();
      run.block_count = spec.block_count;
      run.output_rows = run.count;
      run.targets = &targets[start];
      run.output.target_logprobs = &logprobs[start];
      run.output.argmax = &argmax[start];
      Status status = backend::check_runs(model.config(), **cache, {&run, 1});
      if (status.ok()) status = model.forward(**cache, {&run, 1}, nullptr);
      if (!status.ok()) return status;
    }
    for (size_t i = 0; i < request.logprobs.size(); ++i) {
      const double difference = std::abs(static_cast<double>(logprobs[i]) - request.logprobs[i]);
      result.max_abs_difference = std::isnan(difference) ? INFINITY : std::max(result.max_abs_difference, difference);
      ++result.compared;
    }
    for (size_t i = 0; i < request.generated.size(); ++i) {
      result.tokens_equal += argmax[request.prompt.size() - 1 + i] == request.generated[i];
      ++result.tokens;
    }
  }
  return result;
}

}  // namespace assay::testing
