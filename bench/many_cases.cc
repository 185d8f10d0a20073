#include "bench/many_cases.h"

#include <fmt/format.h>

#include <fstream>
#include <stdexcept>
#include <string>

namespace assay::bench {
namespace {

constexpr int kPromptTokens = 20;
constexpr int kTokens = 30;

std::string config() {
  std::string text =
      "ENV_VARS:\n  CUDA_DEVICE_MAX_CONNECTIONS: 1\n  NVTE_ALLOW_NONDETERMINISTIC_ALGO: 0\n  NCCL_ALGO: Ring\n"
      "  CUBLAS_WORKSPACE_CONFIG: :4096:8\nTEST_TYPE: frozen-start\nMODE: inference\nMODEL_ARGS:\n";
  for (const char* argument : {"--num-layers: 24",
                               "--hidden-size: 1152",
                               "--num-attention-heads: 16",
                               "--max-position-embeddings: 1024",
                               "--seq-length: 1024",
                               "--micro-batch-size: 1",
                               "--ckpt-format: torch_dist",
                               "--attention-backend: flash",
                               "--tensor-model-parallel-size: 1",
                               "--pipeline-model-parallel-size: 1",
                               "--use-mcore-models: true",
                               "--attention-dropout: 0.0",
                               "--hidden-dropout: 0.0",
                               "--transformer-impl: transformer_engine",
                               "--distributed-backend: nccl",
                               "--log-interval: 1",
                               "--timing-log-level: 0",
                               "--bf16: true",
                               "--deterministic-mode: true",
                               "--no-load-optim: true",
                               "--temperature: 1.0",
                               "--top_k: 1",
                               "--return-log-probs: true",
                               "--num-tokens-to-generate: 30",
                               "--inference-max-seq-length: 4096",
                               "--inference-max-requests: 2",
                               "--use-legacy-static-engine: true",
                               "--tokenizer-type: NullTokenizer",
                               "--vocab-size: 1000",
                               "--prompts: \"1 2 3 4\"",
                               "--output-path: ${INFERENCE_OUTPUT_PATH}"}) {
    text += std::string("  ") + argument + "\n";
  }
  return text +
         "METRICS:\n  - \"generated_tokens\"\n  - \"generated_text\"\n  - \"logprobs\"\nASSAY:\n  engine: replay\n";
}

std::string golden(int number) {
  std::string text = "{";
  for (int request = 0; request < 2; ++request) {
    std::string tokens;
    std::string logprobs;
    for (int i = 0; i < kTokens; ++i)
      tokens += fmt::format("{}{}", i ? ", " : "", (number * 7 + i * 13 + request) % 1000);
    for (int i = 0; i < kPromptTokens - 1 + kTokens; ++i) {
      logprobs += fmt::format("{}-{}.{:06}", i ? ", " : "", 1 + i % 9, (number * 31 + i * 977) % 1000000);
    }
    text += fmt::format(
        "{}\"{}\": {{\"input_prompt\": \"prompt {}\", \"generated_text\": \" text of case {} request {}\", "
        "\"generated_tokens\": [{}], \"latency\": 0.5, \"logprobs\": [{}]}}",
        request ? ", " : "", request, request, number, request, tokens, logprobs);
  }
  return text + "}\n";
}

void write(const std::filesystem::path& path, const std::string& text) {
  std::ofstream file(path, std::ios::binary);
  file << text;
  if (!file.flush()) throw std::runtime_error(path.string() + ": cannot be written");
}

}  // namespace

void write_cases(const std::filesystem::path& folder, int count) {
  const std::string text = config();
  for (int number = 0; number < count; ++number) {
    const std::filesystem::path path =
        folder / fmt::format("model{}", number / 1000) / fmt::format("case_{:05}", number);
    std::filesystem::create_directories(path);
    write(path / "model_config.yaml", text);
    write(path / "golden_values_dev_any.json", golden(number));
  }
}

}  // namespace assay::bench
