// Decode steps of the fast path against the plain kernels and against themselves, bit for bit.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "backends/cuda/fast/testing/random_model.h"
#include "backends/cuda/testing/on_device.h"

namespace assay::cuda::fast {
namespace {

constexpr RandomShape kSmall = {.layers = 3,
                                .experts = 32,
                                .topk = 6,
                                .width = 1408,
                                .shared_width = 2816,
                                .vocabulary = 2 * kVocabularySegment,
                                .positions = 1600};

class FastDecode : public OnDevice {};

TEST_F(FastDecode, EveryWayGivesTheBitsOfThePlainKernels) {
  RandomModel model(kSmall);
  for (const int position : {0, 5, 63, 127, 200, 255, 256, 300, 700, 1500}) {
    for (const int tokens : {1, 2, 5, 8}) {
      model.start(tokens, position, 3);
      model.step_plain();
      const auto expected = model.logits();
      for (const bool overlapped : {false, true}) {
        model.start(tokens, position, 3);
        model.step_kernels(overlapped);
        EXPECT_TRUE(same_bits(model.logits(), expected))
            << "position " << position << " tokens " << tokens << " " << overlapped;
      }
      model.start(tokens, position, 3);
      model.step_persistent();
      EXPECT_TRUE(same_bits(model.logits(), expected)) << "persistent, position " << position << " tokens " << tokens;
    }
  }
}

TEST_F(FastDecode, ATokenDoesNotSeeItsNeighbours) {
  RandomModel model(kSmall);
  model.start(1, 300);
  model.step_persistent();
  const auto alone = model.logits();
  for (int tokens = 2; tokens <= kMostTokens; ++tokens) {
    model.start(tokens, 300, 11);
    model.step_persistent();
    auto first = model.logits();
    first.resize(alone.size());
    EXPECT_TRUE(same_bits(first, alone)) << tokens;
  }
}

TEST_F(FastDecode, AThousandStepsInAGraphGiveTheSameBits) {
  RandomModel model(kSmall);
  for (const int way : {0, 1, 2}) {
    cudaGraph_t graph;
    cudaGraphExec_t steps;
    model.start(1, 100);
    model.args().splits = 5;
    check(cudaStreamBeginCapture(model.stream(), cudaStreamCaptureModeThreadLocal), "cudaStreamBeginCapture");
    if (way == 2) {
      model.step_persistent();
    } else {
      model.step_kernels(way == 1);
    }
    check(cudaStreamEndCapture(model.stream(), &graph), "cudaStreamEndCapture");
    check(cudaGraphInstantiate(&steps, graph, 0), "cudaGraphInstantiate");
    std::vector<uint16_t> expected;
    for (int run = 0; run < 2; ++run) {
      model.start(1, 100);
      for (int i = 0; i < 1000; ++i) check(cudaGraphLaunch(steps, model.stream()), "cudaGraphLaunch");
      const auto got = model.logits();
      if (run == 0) expected = got;
      EXPECT_TRUE(same_bits(got, expected)) << way;
    }
    check(cudaGraphExecDestroy(steps), "cudaGraphExecDestroy");
    check(cudaGraphDestroy(graph), "cudaGraphDestroy");
  }
}

TEST_F(FastDecode, TheLikeliestTokenIsPickedWithItsLogprob) {
  RandomModel model(kSmall);
  model.start(8, 100, 7);
  model.step_persistent();
  const auto logits = model.logits();
  std::vector<int32_t> ids(8);
  std::vector<float> logprobs(8);
  check(cudaMemcpy(ids.data(), model.args().buffers.ids, 32, cudaMemcpyDeviceToHost), "cudaMemcpy");
  check(cudaMemcpy(logprobs.data(), model.args().buffers.logprobs, 32, cudaMemcpyDeviceToHost), "cudaMemcpy");
  const auto vocabulary = static_cast<size_t>(kSmall.vocabulary);
  for (size_t t = 0; t < 8; ++t) {
    std::vector<double> row;
    for (size_t i = 0; i < vocabulary; ++i) {
      const uint32_t bits = static_cast<uint32_t>(logits[t * vocabulary + i]) << 16;
      float value;
      std::memcpy(&value, &bits, sizeof value);
      row.push_back(value);
    }
    const auto best = std::max_element(row.begin(), row.end());
    double sum = 0;
    for (const double value : row) sum += std::exp(value - *best);
    EXPECT_EQ(ids[t], best - row.begin());
    EXPECT_NEAR(logprobs[t], -std::log(sum), 1e-5);
  }
}

}  // namespace
}  // namespace assay::cuda::fast
