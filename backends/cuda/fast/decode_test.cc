// Decode steps of the fast path against the plain kernels and against themselves, bit for bit.
#include <gtest/gtest.h>

#include "backends/cuda/fast/testing/random_model.h"
#include "backends/cuda/testing/on_device.h"

namespace assay::cuda::fast {
namespace {

constexpr RandomShape kSmall = {.layers = 3,
                                .dense_layers = 1,
                                .experts = 32,
                                .topk = 6,
                                .width = 1408,
                                .shared_width = 2816,
                                .expert_bias = true,
                                .scaling_factor = 1.5f,
                                .vocabulary = 2 * kVocabularySegment + 2064,
                                .positions = 1600};

enum class Way { kApart, kOverlapped, kPersistent };
constexpr Way kWays[] = {Way::kApart, Way::kOverlapped, Way::kPersistent};
constexpr const char* kWayNames[] = {"kernels apart", "kernels overlapped", "persistent"};

void step(RandomModel& model, Way way) {
  if (way == Way::kPersistent) {
    model.step_persistent();
  } else {
    model.step_kernels(way == Way::kOverlapped);
  }
}

void expect_same(const StepResult& seen, const StepResult& wanted, const std::string& where) {
  EXPECT_TRUE(same_bits(seen.logits, wanted.logits)) << "logits, " << where;
  EXPECT_TRUE(same_bits(seen.facts, wanted.facts)) << "facts, " << where;
  EXPECT_TRUE(same_bits(seen.cache, wanted.cache)) << "cache, " << where;
  if (wanted.margins.empty()) return;
  EXPECT_TRUE(same_bits(seen.chosen, wanted.chosen)) << "chosen experts, " << where;
  EXPECT_TRUE(same_bits(seen.margins, wanted.margins)) << "margins, " << where;
}

// Every way at each position and number of tokens against the plain kernels.
void expect_plain_bits(RandomModel& model, const std::vector<int>& positions, const std::vector<int>& all_tokens) {
  for (const int position : positions) {
    for (const int tokens : all_tokens) {
      model.start(tokens, position, 3);
      model.step_plain();
      const StepResult wanted = model.result();
      for (const Way way : kWays) {
        model.start(tokens, position, 3);
        if (way == Way::kPersistent && !persistent_takes(model.args())) continue;
        step(model, way);
        expect_same(model.result(), wanted,
                    std::string(kWayNames[static_cast<int>(way)]) + ", position " + std::to_string(position) + ", " +
                        std::to_string(tokens) + " tokens");
      }
    }
  }
}

class FastDecode : public OnDevice {};

TEST_F(FastDecode, EveryWayGivesTheBitsOfThePlainKernels) {
  RandomModel model(kSmall);
  expect_plain_bits(model, {0, 5, 63, 127, 200, 255, 256, 300, 700, 1500}, {1, 2, 5, 8});
}

TEST_F(FastDecode, ShortBlocksOfTheCacheAreRead) {
  RandomShape shape = kSmall;
  shape.block_size = 16;
  RandomModel model(shape);
  expect_plain_bits(model, {15, 16, 47, 300, 1000}, {1, 3});
}

TEST_F(FastDecode, QueryHeadsOfAGroupShareKeysAndValues) {
  for (const int groups : {2, 4, 8}) {
    RandomShape shape = kSmall;
    shape.layers = 2;
    shape.groups = groups;
    RandomModel model(shape);
    expect_plain_bits(model, {0, 100, 300, 1100}, {1, 4});
  }
}

TEST_F(FastDecode, AModelWithoutExpertsIsRun) {
  RandomShape shape = kSmall;
  shape.layers = shape.dense_layers = 2;
  RandomModel model(shape);
  expect_plain_bits(model, {0, 130, 600}, {1, 8});
}

TEST_F(FastDecode, ALongContextIsReadInSplits) {
  RandomShape shape = kSmall;
  shape.layers = 2;
  shape.positions = 4416;
  shape.tokens = 2;
  RandomModel model(shape);
  expect_plain_bits(model, {2047, 4095, 4300}, {1, 2});
}

TEST_F(FastDecode, ATokenDoesNotSeeItsNeighbours) {
  RandomModel model(kSmall);
  for (const Way way : kWays) {
    model.start(1, 300);
    step(model, way);
    const std::vector<float> alone = model.result().logits;
    for (int tokens = 2; tokens <= kMostTokens; ++tokens) {
      model.start(tokens, 300, 11);
      step(model, way);
      std::vector<float> first = model.result().logits;
      first.resize(alone.size());
      EXPECT_TRUE(same_bits(first, alone)) << tokens << kWayNames[static_cast<int>(way)];
    }
  }
}

TEST_F(FastDecode, AThousandStepsInAGraphGiveTheSameBits) {
  RandomModel model(kSmall);
  StepResult expected;
  for (const Way way : kWays) {
    cudaGraph_t graph;
    cudaGraphExec_t steps;
    model.start(1, 100);
    model.args().splits = 5;
    model.args().advance = true;
    check(cudaStreamBeginCapture(model.stream(), cudaStreamCaptureModeThreadLocal), "cudaStreamBeginCapture");
    step(model, way);
    check(cudaStreamEndCapture(model.stream(), &graph), "cudaStreamEndCapture");
    check(cudaGraphInstantiate(&steps, graph, 0), "cudaGraphInstantiate");
    for (int run = 0; run < 2; ++run) {
      model.start(1, 100);
      for (int i = 0; i < 1000; ++i) check(cudaGraphLaunch(steps, model.stream()), "cudaGraphLaunch");
      const StepResult got = model.result();
      if (expected.logits.empty()) expected = got;
      expect_same(got, expected, kWayNames[static_cast<int>(way)]);
    }
    check(cudaGraphExecDestroy(steps), "cudaGraphExecDestroy");
    check(cudaGraphDestroy(graph), "cudaGraphDestroy");
  }
}

TEST_F(FastDecode, AStepMayLeaveItsResultsOut) {
  RandomModel model(kSmall);
  for (const Way way : kWays) {
    model.start(2, 100, 3);
    step(model, way);
    const StepResult wanted = model.result();
    model.start(2, 100, 3);
    StepArgs& args = model.args();
    const StepArgs kept = args;
    args.chosen = nullptr;
    args.margins = nullptr;
    args.targets = nullptr;
    step(model, way);
    args = kept;
    const StepResult seen = model.result();
    EXPECT_TRUE(same_bits(seen.logits, wanted.logits)) << kWayNames[static_cast<int>(way)];
    EXPECT_EQ(seen.chosen, std::vector<uint16_t>(wanted.chosen.size(), 0xffff)) << "written although not wanted";
  }
}

}  // namespace
}  // namespace assay::cuda::fast
