#include "tools/bench/cpu_kernels.h"

#include <algorithm>

#include "backends/cpu/kernels/kernel_probes.h"
#include "core/run/stopwatch.h"

namespace assay::bench {
namespace {

constexpr size_t kMostBytes = size_t{64} << 20;  // of a matrix
constexpr int kCalls = 4;                        // the first one is not counted

struct Layer {
  const char* name;
  int rows;
  int cols;
};

std::vector<Layer> layers_of(const model::ModelConfig& config) {
  const int gate = config.activation == model::Activation::kSwiglu ? 2 : 1;
  const int heads = config.num_attention_heads * config.kv_channels;
  const int hidden = config.hidden_size;
  std::vector<Layer> layers = {
      {"query-key-value layer", heads + 2 * config.num_query_groups * config.kv_channels, hidden},
      {"projection", hidden, heads}};
  const auto mlp = [&](const char* first, const char* second, int width) {
    if (width <= 0) return;
    layers.push_back({first, gate * width, hidden});
    layers.push_back({second, hidden, width});
  };
  const bool dense = std::count(config.moe_layers.begin(), config.moe_layers.end(), true) < config.num_layers;
  if (dense) mlp("first layer of the MLP", "second layer of the MLP", config.ffn_hidden_size);
  if (config.any_moe()) {
    layers.push_back({"router", config.moe.experts, hidden});
    mlp("first layer of an expert", "second layer of an expert", config.moe.ffn_hidden_size);
    mlp("first layer of the shared expert", "second layer of the shared expert", config.moe.shared_ffn_hidden_size);
  }
  layers.push_back({"output layer", config.vocab_size, hidden});
  return layers;
}

KernelRow measure(const cpu::Kernels& kernels, const char* name, const cpu::ProbeSpec& spec) {
  cpu::KernelShape shape = spec.shape;
  if (spec.kernel == "matmul") shape.tokens = spec.items;
  const cpu::Work work = cpu::find_kernel(spec.kernel)->work(shape);
  const auto probe = cpu::make_probe(spec);
  double best = 0;
  for (int call = 0; call < kCalls; ++call) {
    const run::Stopwatch watch;
    probe->run(kernels, {0, probe->items}, {0, probe->outputs});
    const double seconds = std::max(watch.seconds(), 1e-9);
    if (call > 0 && (best == 0 || seconds < best)) best = seconds;
  }
  return {name, 1, work.bytes, work.flops, best};
}

}  // namespace

std::vector<KernelRow> measure_cpu_kernels(const model::ModelConfig& config, double number, uint32_t tokens,
                                           uint32_t past) {
  const auto kernels = cpu::select_kernels("auto");
  if (!kernels) return {};
  const cpu::Number stored = number > 2 ? cpu::Number::kFloat32 : cpu::Number::kBfloat16;
  std::vector<KernelRow> rows;
  for (const Layer& layer : layers_of(config)) {
    const auto cols = static_cast<size_t>(layer.cols);
    const size_t most = std::max<size_t>(1, kMostBytes / (cols * cpu::number_size(stored)));
    rows.push_back(measure(**kernels, layer.name,
                           {.kernel = "matmul",
                            .shape = {.rows = std::min(static_cast<size_t>(layer.rows), most),
                                      .cols = cols,
                                      .tokens = 1,
                                      .number = stored},
                            .items = tokens}));
  }
  const bool bf16 = config.arithmetic == model::Arithmetic::kBf16;
  rows.push_back(measure(**kernels, "attention of a group of heads",
                         {.kernel = "attend",
                          .shape = {.rows = static_cast<size_t>(config.num_attention_heads / config.num_query_groups),
                                    .cols = static_cast<size_t>(config.kv_channels),
                                    .tokens = std::min<size_t>(past + tokens, 256),
                                    .number = bf16 ? cpu::Number::kBfloat16 : cpu::Number::kFloat32},
                          .items = static_cast<size_t>(config.num_attention_heads / config.num_query_groups)}));
  return rows;
}

}  // namespace assay::bench
