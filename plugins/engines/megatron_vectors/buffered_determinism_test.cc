// Both engines on the processor's backends.
#include "plugins/engines/megatron_vectors/determinism_fixture.h"

namespace assay::engines {
namespace {

TEST_F(Determinism, CpuHoldsItOverBatchSizesAndAgainstTheStaticEngine) {
  holds_over_batch_sizes_and_against_the_static_engine("cpu");
}

TEST_F(Determinism, CpuHoldsItOverChunksOfPromptsLongerThan512Tokens) {
  holds_over_chunks_of_prompts_longer_than_512_tokens("cpu");
}

TEST_F(Determinism, CpuHoldsItUnderPreemptionPrefixCacheAndArrivals) {
  holds_under_preemption_prefix_cache_and_arrivals("cpu");
}

TEST_F(Determinism, CpuHoldsItOverThreadCounts) {
  const std::vector<ToyRequest> all = requests(4, 30, 80);
  load("cpu", model::Arithmetic::kBf16, R"({"threads": 1})");
  run_alone(all);
  backend_->close(model_);
  load("cpu", model::Arithmetic::kBf16, R"({"threads": 2})");
  expect_alone(all, {{"block_size", 32}});
}

TEST_F(Determinism, ReferenceHoldsItAndAgreesWithCpu) {
  std::vector<ToyRequest> all = requests(3, 10, 12);
  for (ToyRequest& request : all) request.max_new_tokens = 10;
  load("cpu", model::Arithmetic::kBf16);
  run_alone(all);
  backend_->close(model_);
  load("reference", model::Arithmetic::kBf16);
  expect_alone(all, {{"block_size", 4}, {"chunked_prefill", true}, {"max_chunk", 7}});
  const Outcome tight = expect_alone(all, {{"block_size", 4}, {"block_count", 9}, {"chunked_prefill", true}});
  EXPECT_GT(counted(tight, "preemptions"), 0);
}

}  // namespace
}  // namespace assay::engines
