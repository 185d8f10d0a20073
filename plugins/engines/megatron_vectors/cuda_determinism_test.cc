// Both engines on a GPU.
#include "plugins/engines/megatron_vectors/determinism_fixture.h"

namespace assay::engines {
namespace {

class CudaDeterminism : public Determinism {
 protected:
  void SetUp() override {
    auto info = sdk::sized<assay_backend_info>();
    const Status described = sdk::call(backend_plugin("cuda").backend()->describe, &info);
    ASSERT_TRUE(described.ok()) << described.message();
    if (info.usable == 0) GTEST_SKIP() << sdk::text(info.device);
    Determinism::SetUp();
  }
};

TEST_F(CudaDeterminism, HoldsOverBatchSizesAndAgainstTheStaticEngine) {
  holds_over_batch_sizes_and_against_the_static_engine("cuda");
}

TEST_F(CudaDeterminism, HoldsOverChunksOfPromptsLongerThan512Tokens) {
  holds_over_chunks_of_prompts_longer_than_512_tokens("cuda");
}

TEST_F(CudaDeterminism, HoldsUnderPreemptionPrefixCacheAndArrivals) {
  holds_under_preemption_prefix_cache_and_arrivals("cuda");
}

// Not only the backend's numbers: what the engine makes of them.
TEST_F(CudaDeterminism, Fp32GivesTheResultsOfCpu) {
  std::vector<ToyRequest> all = requests(6, 10, 60);
  for (ToyRequest& request : all) request.max_new_tokens = 20;
  load("cpu", model::Arithmetic::kFp32);
  run_alone(all);
  backend_->close(model_);
  load("cuda", model::Arithmetic::kFp32);
  expect_alone(all, {{"block_size", 8}, {"block_count", 40}});
}

}  // namespace
}  // namespace assay::engines
