// L1 to L3 and reference == cpu, bit for bit, on whole models.
#include <gmock/gmock.h>

#include <cstring>
#include <map>

#include "backends/cpu/cpu_model.h"
#include "backends/cpu/kernels/kernels.h"
#include "backends/reference/reference_model.h"
#include "backends/reference/testing/vector_case.h"

namespace assay::cpu {
namespace {

using ::testing::HasSubstr;

const std::string kShared = std::string(ASSAY_SOURCE_DIR) + "/../shared";

// Everything that a model says about some sequences.
struct Transcript {
  std::vector<std::vector<float>> logits;      // per sequence: (tokens, vocab)
  std::vector<std::vector<float>> logprobs;    // (tokens)
  std::vector<std::vector<int32_t>> ranks;     // (tokens)
  std::vector<std::vector<int32_t>> top_ids;   // (tokens, 4)
  std::vector<std::vector<uint16_t>> routing;  // (tokens, moe layers, topk)
  std::vector<int32_t> sampled;

  bool operator==(const Transcript& other) const {
    for (size_t i = 0; i < logits.size(); ++i) {
      if (std::memcmp(logits[i].data(), other.logits[i].data(), logits[i].size() * sizeof(float)) != 0) return false;
      if (std::memcmp(logprobs[i].data(), other.logprobs[i].data(), logprobs[i].size() * sizeof(float)) != 0) {
        return false;
      }
    }
    return ranks == other.ranks && top_ids == other.top_ids && routing == other.routing && sampled == other.sampled;
  }
};

struct Schedule {
  uint32_t chunk = 1024;     // tokens of one run
  bool together = false;     // all sequences in one batch, else one after the other
  uint32_t block_size = 16;  // of the cache
};

class Session {
 public:
  Session(backend::Model& model, const testing::VectorCase& vector_case, const Schedule& schedule)
      : model_(model), schedule_(schedule) {
    for (const auto& request : vector_case.requests) {
      std::vector<int32_t> ids = request.prompt;
      ids.insert(ids.end(), request.generated.begin(), request.generated.end());
      sequences_.push_back(std::move(ids));
    }
    const model::ModelConfig& config = model.config();
    for (const bool moe : config.moe_layers) routed_ += moe ? static_cast<size_t>(config.moe.topk) : 0;
    for (const auto& ids : sequences_) {
      blocks_.emplace_back();
      for (size_t b = 0; b <= ids.size() / schedule.block_size; ++b) blocks_.back().push_back(next_block_++);
      t_.logits.emplace_back(ids.size() * static_cast<size_t>(config.vocab_size));
      t_.logprobs.emplace_back(ids.size());
      t_.ranks.emplace_back(ids.size());
      t_.top_ids.emplace_back(4 * ids.size());
      t_.routing.emplace_back(ids.size() * routed_);
      targets_.emplace_back(ids.begin() + 1, ids.end());
      targets_.back().push_back(0);
    }
    t_.sampled.resize(sequences_.size());
  }

  Transcript run() {
    assay_cache_spec spec{sizeof(spec), schedule_.block_size, static_cast<uint32_t>(next_block_), 0};
    auto cache = model_.make_cache(spec);
    EXPECT_TRUE(cache.ok()) << cache.status().message();
    (*cache)->block_size = spec.block_size;
    (*cache)->block_count = spec.block_count;
    if (schedule_.together) {
      for (uint32_t start = 0; forward(**cache, 0, sequences_.size(), start); start += schedule_.chunk) {
      }
    } else {
      for (size_t i = 0; i < sequences_.size(); ++i) {
        for (uint32_t start = 0; forward(**cache, i, i + 1, start); start += schedule_.chunk) {
        }
      }
    }
    return std::move(t_);
  }

 private:
  bool forward(backend::Cache& cache, size_t first, size_t last, uint32_t start) {
    std::vector<assay_run> runs;
    for (size_t i = first; i < last; ++i) {
      if (start >= sequences_[i].size()) continue;
      assay_run run{};
      run.ids = &sequences_[i][start];
      run.count = std::min(schedule_.chunk, static_cast<uint32_t>(sequences_[i].size()) - start);
      run.start = start;
      run.blocks = blocks_[i].data();
      run.block_count = static_cast<uint32_t>(blocks_[i].size());
      run.output_rows = run.count;
      run.targets = &targets_[i][start];
      run.top_n = 4;
      run.sampling = {0.8, 0, 0, 0.9, 99, i};
      run.output.logits = &t_.logits[i][start * static_cast<size_t>(model_.config().vocab_size)];
      run.output.target_logprobs = &t_.logprobs[i][start];
      run.output.target_ranks = &t_.ranks[i][start];
      run.output.top_ids = &t_.top_ids[i][4 * size_t{start}];
      if (routed_ > 0) run.output.routing = &t_.routing[i][start * routed_];
      run.output.sampled = &t_.sampled[i];
      runs.push_back(run);
    }
    if (runs.empty()) return false;
    Status status = backend::check_runs(model_.config(), cache, runs);
    if (status.ok()) status = model_.forward(cache, runs);
    EXPECT_TRUE(status.ok()) << status.message();
    return status.ok();
  }

  backend::Model& model_;
  Schedule schedule_;
  std::vector<std::vector<int32_t>> sequences_;
  std::vector<std::vector<int32_t>> targets_;
  std::vector<std::vector<int32_t>> blocks_;
  int32_t next_block_ = 0;
  size_t routed_ = 0;
  Transcript t_;
};

// Two requests of every shared model, one short request of every `stride`-th of the further ones.
std::vector<testing::VectorCase> cases(size_t stride) {
  std::vector<testing::VectorCase> result;
  for (const std::string& name : testing::list_cases(kShared + "/vectors", "_b1")) {
    auto vector_case = testing::read_case(kShared + "/vectors", name);
    if (!vector_case) continue;  // takes its arguments from the checkpoint
    vector_case->requests.erase(vector_case->requests.begin());
    result.push_back(std::move(*vector_case));
    result.back().requests.resize(2);
  }
  const std::string further = std::string(ASSAY_SOURCE_DIR) + "/../extra_vectors";
  const auto names = testing::list_cases(further, "_b1");
  for (size_t i = 0; i < names.size(); i += stride) {
    auto vector_case = testing::read_case(further, names[i]);
    if (!vector_case) continue;
    result.push_back(std::move(*vector_case));
    result.back().requests = {result.back().requests[2]};
  }
  return result;
}

std::string options(std::string_view isa, int threads) {
  return R"({"isa":")" + std::string(isa) + R"(","threads":)" + std::to_string(threads) + "}";
}

Transcript transcript(const testing::VectorCase& vector_case, const std::string& opts, const Schedule& schedule) {
  auto model = open_cpu(vector_case.config, vector_case.checkpoint, opts);
  EXPECT_TRUE(model.ok()) << model.status().message();
  return Session(**model, vector_case, schedule).run();
}

// Every model in both arithmetics against the reference, once an instruction set.
TEST(CpuEquality, EveryIsaGivesTheBitsOfTheReference) {
  const auto all = cases(1);
  if (all.empty()) GTEST_SKIP() << "no cases below " << kShared;
  for (testing::VectorCase vector_case : all) {
    for (const auto arithmetic : {model::Arithmetic::kFp32, model::Arithmetic::kBf16}) {
      vector_case.config.arithmetic = arithmetic;
      auto reference = reference::open_reference(vector_case.config, vector_case.checkpoint, "{}");
      ASSERT_TRUE(reference.ok()) << reference.status().message();
      const Transcript expected = Session(**reference, vector_case, {}).run();
      for (const std::string_view isa : built_isas()) {
        if (!can_run(isa)) continue;
        if (isa == "scalar" && arithmetic == model::Arithmetic::kFp32) continue;  // slow, one arithmetic is enough
        EXPECT_TRUE(transcript(vector_case, options(isa, 2), {}) == expected)
            << vector_case.name << ", isa " << isa << ", arithmetic " << static_cast<int>(arithmetic);
      }
    }
  }
}

TEST(CpuEquality, BatchChunkingThreadsAndBlockSizeDoNotChangeABit) {
  const auto all = cases(6);
  if (all.empty()) GTEST_SKIP() << "no cases below " << kShared;
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
}

TEST(CpuModel, WrongOptionsAreNamed) {
  const model::ModelConfig config;
  EXPECT_THAT(open_cpu(config, "/nowhere", R"({"isa":"vax"})").status().message(), HasSubstr("isa 'vax' is unknown"));
  EXPECT_THAT(open_cpu(config, "/nowhere", R"({"threads":-1})").status().message(), HasSubstr("'threads': -1"));
  EXPECT_FALSE(open_cpu(config, "/nowhere", "{}").ok());
}

TEST(CpuModel, ACacheThatDoesNotFitIsRefusedWithBothSizes) {
  const auto all = cases(100);
  if (all.empty()) GTEST_SKIP() << "no cases below " << kShared;
  auto model = open_cpu(all[0].config, all[0].checkpoint, "{}");
  ASSERT_TRUE(model.ok()) << model.status().message();
  const assay_cache_spec spec{sizeof(spec), 1u << 20, 1u << 20, 0};
  const auto cache = (*model)->make_cache(spec);
  ASSERT_FALSE(cache.ok());
  EXPECT_EQ(cache.status().code(), StatusCode::kExhausted);
  EXPECT_THAT(cache.status().message(), HasSubstr("GB needed"));
}

}  // namespace
}  // namespace assay::cpu
