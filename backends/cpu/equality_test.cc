// L1 to L3 and reference == cpu, bit for bit, on whole models.
#include <gmock/gmock.h>
#include <unistd.h>

#include <filesystem>

#include "backends/cpu/cpu_model.h"
#include "backends/cpu/equality_session.h"
#include "backends/cpu/kernels/kernels.h"
#include "backends/model/checkpoint/model_writer.h"
#include "backends/reference/reference_model.h"
#include "backends/reference/testing/vector_case.h"

namespace assay::cpu {
namespace {

using ::testing::HasSubstr;

// Small models of odd sizes that together use every feature of ModelConfig.
std::vector<std::pair<std::string, model::ModelConfig>> odd_models() {
  model::ModelConfig base;
  base.num_layers = 2;
  base.hidden_size = 40;
  base.ffn_hidden_size = 52;
  base.num_attention_heads = 6;
  base.num_query_groups = 2;
  base.kv_channels = 20;
  base.vocab_size = 290;
  base.max_position_embeddings = 1024;
  base.norm = model::Norm::kRmsNorm;
  base.activation = model::Activation::kSwiglu;
  base.linear_bias = false;
  base.tied_embeddings = false;
  base.moe_layers = {false, false};
  std::vector<std::pair<std::string, model::ModelConfig>> models;

  model::ModelConfig c = base;
  c.norm = model::Norm::kLayerNorm;
  c.norm_gamma_plus_one = true;
  c.positions = model::Positions::kLearnedAbsolute;
  c.activation = model::Activation::kGeluTanh;
  c.linear_bias = true;
  c.tied_embeddings = true;
  c.num_query_groups = 6;
  c.vocab_size = 4200;  // more than one segment of the log-softmax
  models.emplace_back("LayerNorm 1p, learned positions, GELU tanh, biases, tied", c);

  c = base;
  c.rotary_percent = 0.6;
  c.rotary_interleaved = true;
  c.qk_layernorm = true;
  c.qkv_bias = true;
  c.hidden_size = 300;  // more than one block of a dot
  c.activation = model::Activation::kGeluErf;
  models.emplace_back("interleaved RoPE, query and key norm, GELU erf", c);

  c = base;
  c.moe_layers = {true, true};
  c.moe.experts = 9;
  c.moe.topk = 4;
  c.moe.ffn_hidden_size = 28;
  c.moe.shared_ffn_hidden_size = 36;
  c.moe.score = model::RouterScore::kSigmoid;
  c.moe.expert_bias = true;
  c.moe.groups = 3;
  c.moe.group_topk = 2;
  c.moe.scaling_factor = 2.5;
  models.emplace_back("sigmoid router, groups, expert bias, shared expert", c);

  c.moe_layers = {false, true};
  c.moe.score = model::RouterScore::kSoftmax;
  c.moe.pre_softmax = true;
  c.moe.expert_bias = false;
  c.moe.groups = 0;
  c.moe.group_topk = 0;
  c.moe.shared_gate = true;
  c.moe.router_fp32 = true;
  c.norm = model::Norm::kLayerNorm;
  c.activation = model::Activation::kSquaredRelu;
  c.positions = model::Positions::kNone;
  c.num_query_groups = 1;
  models.emplace_back("dense then mixture, softmax before the choice, gated shared expert", c);

  c.moe.pre_softmax = false;
  c.moe.router_fp32 = false;
  c.moe.shared_gate = false;
  c.moe.shared_ffn_hidden_size = 0;
  c.moe.router_bias = true;
  c.linear_bias = true;
  models.emplace_back("biases of router and experts", c);
  return models;
}

// Checkpoints of the odd models in a temporary folder; one sequence crosses attention splits and slices of tokens.
std::vector<testing::VectorCase> cases() {
  std::vector<testing::VectorCase> result;
  const model::Dtype dtypes[] = {model::Dtype::kFloat32, model::Dtype::kBfloat16, model::Dtype::kFloat16};
  size_t i = 0;
  for (const auto& [name, config] : odd_models()) {
    testing::VectorCase one;
    one.name = name;
    one.config = config;
    one.checkpoint = ::testing::TempDir() + "assay_equality_" + std::to_string(getpid()) + "_" + std::to_string(i);
    model::CheckpointSpec spec;
    spec.model = config;
    spec.dtype = dtypes[i % 3];
    spec.std = 0.2;
    const Status status = model::write_checkpoint(spec, one.checkpoint);
    EXPECT_TRUE(status.ok()) << status.message();
    for (const size_t count : {size_t{5}, size_t{33}, i == 1 ? size_t{530} : 20 * i + 1}) {
      one.requests.push_back({some_ids(count, config.vocab_size, static_cast<uint32_t>(count)), {}, {}});
    }
    result.push_back(std::move(one));
    ++i;
  }
  return result;
}

void remove(const std::vector<testing::VectorCase>& all) {
  for (const testing::VectorCase& one : all) std::filesystem::remove_all(one.checkpoint);
}

std::string options(std::string_view isa, int threads) {
  return R"({"isa":")" + std::string(isa) + R"(","threads":)" + std::to_string(threads) +
         R"(,"parallel_from":1})";  // even the smallest operator is cut up
}

// Fails the test and returns an empty transcript when the model does not open.
Transcript transcript(const testing::VectorCase& vector_case, const std::string& opts, const Schedule& schedule) {
  auto model = open_cpu(vector_case.config, vector_case.checkpoint, opts);
  EXPECT_TRUE(model.ok()) << model.status().message();
  if (!model) return {};
  return Session(**model, vector_case, schedule).run();
}

// What was asked for was written: every margin, and some of them above zero.
bool margins_are_plausible(const Transcript& t) {
  size_t positive = 0;
  size_t wrong = 0;
  for (const auto& margins : t.margins) {
    for (const float margin : margins) {
      positive += margin > 0;
      wrong += !(margin >= 0);
    }
  }
  return wrong == 0 && (positive > 0 || t.margins.front().empty());
}

// Every model in both arithmetics against the reference, once an instruction set.
TEST(CpuEquality, EveryIsaGivesTheBitsOfTheReference) {
  const auto all = cases();
  for (testing::VectorCase vector_case : all) {
    for (const auto arithmetic : {model::Arithmetic::kFp32, model::Arithmetic::kBf16}) {
      vector_case.config.arithmetic = arithmetic;
      auto reference = reference::open_reference(vector_case.config, vector_case.checkpoint, "{}");
      ASSERT_TRUE(reference.ok()) << reference.status().message();
      const Transcript expected = Session(**reference, vector_case, {}).run();
      EXPECT_TRUE(margins_are_plausible(expected)) << vector_case.name;
      for (const std::string_view isa : built_isas()) {
        if (!can_run(isa)) continue;
        if (isa == "scalar" && arithmetic == model::Arithmetic::kFp32) continue;  // slow, one arithmetic is enough
        EXPECT_TRUE(transcript(vector_case, options(isa, 2), {}) == expected)
            << vector_case.name << ", isa " << isa << ", arithmetic " << static_cast<int>(arithmetic);
      }
    }
  }
  remove(all);
}

TEST(CpuEquality, BatchChunkingThreadsAndBlockSizeDoNotChangeABit) {
  const auto all = cases();
  for (testing::VectorCase vector_case : all) {
    for (const auto arithmetic : {model::Arithmetic::kFp32, model::Arithmetic::kBf16}) {
      vector_case.config.arithmetic = arithmetic;
      const Transcript expected = transcript(vector_case, options("auto", 1), {});
      const std::pair<int, Schedule> variants[] = {{1, {1, false, 16}},   {2, {1, true, 16}},    {3, {5, true, 7}},
                                                   {2, {1024, true, 64}}, {4, {13, false, 256}}, {2, {64, true, 1}}};
      for (const auto& [threads, schedule] : variants) {
        EXPECT_TRUE(transcript(vector_case, options("auto", threads), schedule) == expected)
            << vector_case.name << ": " << threads << " threads, chunk " << schedule.chunk << ", together "
            << schedule.together << ", blocks of " << schedule.block_size;
      }
    }
  }
  remove(all);
}

// L2 and L3 once an instruction set: sequences one by one, token by token, against batches that cross every tile.
TEST(CpuEquality, EveryIsaGivesABatchOfAnySizeTheBitsOfItsRowsAlone) {
  const auto all = cases();
  for (testing::VectorCase vector_case : all) {
    vector_case.config.arithmetic = model::Arithmetic::kBf16;
    for (const std::string_view isa : built_isas()) {
      if (!can_run(isa)) continue;
      for (const size_t batch : {1u, 2u, 3u, 7u, 8u, 16u, 33u}) {
        vector_case.requests.clear();
        for (size_t i = 0; i < batch; ++i) {
          const size_t count = 2 + i % 4;
          vector_case.requests.push_back(
              {some_ids(count, vector_case.config.vocab_size, static_cast<uint32_t>(i)), {}, {}});
        }
        const Transcript expected = transcript(vector_case, options(isa, 1), {1, false, 16});
        for (const uint32_t chunk : {1u, 3u, 1024u}) {
          EXPECT_TRUE(transcript(vector_case, options(isa, 2), {chunk, true, 16}) == expected)
              << vector_case.name << ", isa " << isa << ", batch " << batch << ", chunk " << chunk;
        }
      }
    }
  }
  remove(all);
}

TEST(CpuModel, WrongOptionsAreNamed) {
  const model::ModelConfig config;
  EXPECT_THAT(open_cpu(config, "/nowhere", R"({"isa":"vax"})").status().message(), HasSubstr("isa 'vax' is unknown"));
  EXPECT_THAT(open_cpu(config, "/nowhere", R"({"threads":-1})").status().message(), HasSubstr("'threads': -1"));
  EXPECT_FALSE(open_cpu(config, "/nowhere", "{}").ok());
}

TEST(CpuModel, ACacheThatDoesNotFitIsRefusedWithBothSizes) {
  const auto all = cases();
  auto model = open_cpu(all[0].config, all[0].checkpoint, "{}");
  ASSERT_TRUE(model.ok()) << model.status().message();
  const assay_cache_spec spec{sizeof(spec), 1u << 20, 1u << 20, 0};
  const auto cache = (*model)->make_cache(spec);
  ASSERT_FALSE(cache.ok());
  EXPECT_EQ(cache.status().code(), StatusCode::kExhausted);
  EXPECT_THAT(cache.status().message(), HasSubstr("GB needed"));
  remove(all);
}

}  // namespace
}  // namespace assay::cpu
