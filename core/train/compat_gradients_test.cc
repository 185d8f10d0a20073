// Outcomes as the lines of Megatron-LM's test_optimizer_grads_match.py have them.
#include "core/train/compat_gradients.h"

#include <gmock/gmock.h>

#include <functional>
#include <limits>
#include <numeric>
#include <optional>

namespace assay::train {
namespace {

using testing::HasSubstr;
using TensorShape = std::vector<int64_t>;

constexpr const char* kColumnState = "optimizer.state.exp_avg.decoder.layers.mlp.linear_fc1.weight";
constexpr const char* kRowState = "optimizer.state.exp_avg.decoder.layers.mlp.linear_fc2.weight";
constexpr const char* kWordState = "optimizer.state.exp_avg.embedding.word_embeddings.weight";
constexpr const char* kOutputState = "optimizer.state.exp_avg.output_layer.weight";

struct StateHalf {
  TensorShape state;
  std::optional<TensorShape> weight;
  std::vector<float> values = {};  // empty: 1, 2, 3 ...
  const char* dtype = "float32";
};

CompatVerdict judged_pair(const char* key, const StateHalf& left, const StateHalf& right) {
  const auto values_of = [](const StateHalf& half) {
    if (!half.values.empty()) return half.values;
    std::vector<float> values(
        static_cast<size_t>(std::accumulate(half.state.begin(), half.state.end(), int64_t{1}, std::multiplies<>())));
    std::iota(values.begin(), values.end(), 1.0F);
    return values;
  };
  const std::vector<float> a = values_of(left);
  const std::vector<float> b = values_of(right);
  const auto state_of = [](const StateHalf& half, const std::vector<float>& values) {
    return CompatState{half.state, half.dtype, values, half.weight ? &*half.weight : nullptr};
  };
  CompatGradients pair;
  pair.compare(key, state_of(left, a), state_of(right, b));
  return pair.verdict();
}

TEST(CompatGradients, TellEachPairAsTheirFileDoes) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const float inf = std::numeric_limits<float>::infinity();
  const std::vector<float> by_ranks = {1, 2, 5, 6, 3, 4, 7, 8};  // of (1 2 3 4), (5 6 7 8) on two ranks
  const std::vector<float> some = {1, 2, 3, 4, 99, 99};
  struct {
    const char* name;
    const char* key;
    StateHalf left, right;
    const char* failure;  // part of it; "": they pass
  } const pairs[] = {
      {"the same", kColumnState, {{2, 2}, {}}, {{2, 2}, {}}, ""},
      {"within the bound", kColumnState, {{2}, {}, {1, 1}}, {{2}, {}, {1, 1.1F}}, ""},
      {"beyond the bound", kColumnState, {{2}, {}, {1, 1}}, {{2}, {}, {1, 1.3F}}, "relative norm magnitude"},
      {"another type", kColumnState, {{2}, {}}, {{2}, {}, {}, "bfloat16"}, "Tensor meta mismatch"},
      {"both of another type", kColumnState, {{2}, {}, {}, "bfloat16"}, {{2}, {}, {}, "bfloat16"}, ""},
      {"no number", kColumnState, {{2}, {}, {1, nan}}, {{2}, {}, {1, nan}}, "relative norm magnitude"},
      {"infinite", kColumnState, {{2}, {}, {1, inf}}, {{2}, {}, {1, inf}}, "relative norm magnitude"},
      {"squares that overflow", kColumnState, {{1}, {}, {1e30F}}, {{1}, {}, {2e30F}}, "relative norm magnitude"},
      {"zero", kColumnState, {{2}, {}, {0, 0}}, {{2}, {}, {0, 0}}, "No non-zero tensors"},
      {"nearly zero", kColumnState, {{2}, {}, {1e-5F, 0}}, {{2}, {}, {1e-5F, 0}}, "No non-zero tensors"},
      {"nothing", kColumnState, {{0}, {}}, {{0}, {}}, "RuntimeError"},
      {"other shapes without weights", kColumnState, {{2, 2}, {}}, {{4}, {}}, "KeyError"},
      {"a weight on one side", kColumnState, {{2, 2}, TensorShape{2, 2}}, {{4}, {}}, "KeyError"},
      {"weights of two shapes",
       kColumnState,
       {{1, 4}, TensorShape{2, 2}},
       {{4}, TensorShape{4, 1}},
       "Tensor shape mismatch"},
      {"columns over ranks",
       kColumnState,
       {{1, 1, 1, 8}, TensorShape{1, 2, 4}},
       {{1, 1, 2, 4}, TensorShape{1, 2, 4}},
       ""},
      {"a left state that is too small",
       kColumnState,
       {{4}, TensorShape{1, 2, 4}},
       {{8}, TensorShape{1, 2, 4}},
       "RuntimeError"},
      {"a right state that is",
       kColumnState,
       {{8}, TensorShape{1, 2, 4}},
       {{4}, TensorShape{1, 2, 4}},
       "simple reshape failed"},
      {"a bias", kColumnState, {{1, 4}, TensorShape{4}}, {{2, 2}, TensorShape{4}}, ""},
      {"rows over ranks, right",
       kRowState,
       {{1, 1, 1, 8}, TensorShape{1, 2, 4}},
       {{1, 1, 2, 4}, TensorShape{1, 2, 4}, by_ranks},
       ""},
      {"rows over ranks, left: it is not brought in order",
       kRowState,
       {{1, 1, 2, 4}, TensorShape{1, 2, 4}, by_ranks},
       {{1, 1, 1, 8}, TensorShape{1, 2, 4}},
       "relative norm magnitude"},
      {"rows of a matrix", kRowState, {{1, 8}, TensorShape{2, 4}}, {{1, 2, 4}, TensorShape{2, 4}}, "IndexError"},
      {"rows of a flat state", kRowState, {{1, 8}, TensorShape{1, 2, 4}}, {{8}, TensorShape{1, 2, 4}}, "IndexError"},
      {"rows over no ranks",
       kRowState,
       {{0}, TensorShape{1, 0, 4}},
       {{1, 1, 0, 4}, TensorShape{1, 0, 4}},
       "ZeroDivisionError"},
      {"rows over ranks that do not divide them",
       kRowState,
       {{1, 1, 1, 8}, TensorShape{1, 2, 4}},
       {{1, 1, 3, 4}, TensorShape{1, 2, 4}},
       "RuntimeError"},
      {"padding", kWordState, {{1, 1, 4}, TensorShape{2, 2}}, {{1, 1, 6}, TensorShape{3, 2}, some}, ""},
      {"padding of the left", kWordState, {{1, 1, 6}, TensorShape{3, 2}, some}, {{1, 1, 4}, TensorShape{2, 2}}, ""},
      {"padding of the output layer",
       kOutputState,
       {{1, 1, 4}, TensorShape{2, 2}},
       {{1, 1, 6}, TensorShape{3, 2}, some},
       ""},
      {"words of another width: passed over, so that nothing is left",
       kWordState,
       {{4}, TensorShape{2, 2}},
       {{6}, TensorShape{2, 3}},
       "No non-zero tensors"},
      {"a state that is not of its words",
       kWordState,
       {{5}, TensorShape{2, 2}},
       {{6}, TensorShape{3, 2}},
       "RuntimeError"},
      {"words over ranks", kWordState, {{1, 1, 4}, TensorShape{2, 2}}, {{1, 2, 2}, TensorShape{2, 2}}, ""},
      {"words that cannot be reshaped",
       kWordState,
       {{1, 1, 4}, TensorShape{2, 2}},
       {{1, 2, 3}, TensorShape{2, 2}},
       "No non-zero tensors"},
  };
  for (const auto& [name, key, left, right, failure] : pairs) {
    const CompatVerdict verdict = judged_pair(key, left, right);
    const bool passes = failure[0] == '\0';
    EXPECT_EQ(verdict.outcome, passes ? CompatVerdict::kPassed : CompatVerdict::kFailed)
        << name << ": " << verdict.message;
    if (!passes) {
      EXPECT_THAT(verdict.message, HasSubstr(failure)) << name;
    }
  }
}

TEST(CompatGradients, OneTensorThatIsLargeIsEnough) {
  const std::vector<float> zero = {0, 0};
  const std::vector<float> one = {1, 1};
  CompatGradients pair;
  EXPECT_FALSE(pair.verdict().passes()) << "nothing at all";
  pair.compare(kColumnState, {{2}, "float32", zero}, {{2}, "float32", zero});
  EXPECT_FALSE(pair.verdict().passes());
  pair.compare(kRowState, {{2}, "float32", one}, {{2}, "float32", one});
  EXPECT_TRUE(pair.verdict().passes());
  pair.fail("AssertionError: keys");
  pair.fail("another");
  EXPECT_EQ(pair.verdict().message, "AssertionError: keys");
}

TEST(CompatGradients, LookUpTheWeightByTheStatesName) {
  EXPECT_EQ(compat_weight(kRowState), "decoder.layers.mlp.linear_fc2.weight");
  EXPECT_EQ(compat_weight("optimizer.other.exp_avg.x"), "optimizer.other.exp_avg.x");
}

}  // namespace
}  // namespace assay::train
