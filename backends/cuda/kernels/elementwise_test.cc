// Embedding, norm, activation and residual on the device against the reference's operators, bit for bit.
#include "backends/cuda/kernels/elementwise.h"

#include <gtest/gtest.h>

#include <cmath>

#include "backends/cuda/runtime/buffer.h"
#include "backends/cuda/testing/on_device.h"
#include "backends/reference/arithmetic/elementary.h"
#include "backends/reference/arithmetic/formats.h"
#include "backends/reference/operators.h"

namespace assay::cuda {
namespace {

using Floats = std::vector<float>;
using Bits = std::vector<uint16_t>;
using model::Activation;

class ElementwiseKernel : public OnDevice {};

Floats row_of(const Floats& all, size_t row, size_t width) {
  return {all.begin() + static_cast<ptrdiff_t>(row * width), all.begin() + static_cast<ptrdiff_t>((row + 1) * width)};
}

// (tokens) of `width`, written by a kernel to bf16 rows that were full of NaN: the values, and zeros behind them.
Floats bf16_rows(const DeviceBuffer<uint16_t>& rows, int width) {
  const auto stride = static_cast<size_t>(round_up(width, kTile));
  const Bits bits = download(rows);
  Floats values;
  for (size_t i = 0; i < bits.size(); ++i) {
    if (i % stride < static_cast<size_t>(width)) {
      values.push_back(arithmetic::from_bf16(bits[i]));
    } else {
      EXPECT_EQ(bits[i], 0) << "behind the width of row " << i / stride;
    }
  }
  return values;
}

DeviceBuffer<uint16_t> unwritten_rows(int tokens, int width) {
  return upload(Bits(static_cast<size_t>(tokens * round_up(width, kTile)), 0x7fc0u));
}

TEST_F(ElementwiseKernel, NormsGiveTheBitsOfTheReference) {
  for (const int width : {1, 20, 256, 300, 2048}) {
    for (const auto kind : {model::Norm::kRmsNorm, model::Norm::kLayerNorm}) {
      const int tokens = 3;
      const auto n = static_cast<size_t>(width);
      model::ModelConfig config;
      config.norm = kind;
      const bool centred = kind == model::Norm::kLayerNorm;
      const Floats x = some_floats(4 * n, 1);
      const reference::NormWeights weights{some_floats(n, 2), centred ? some_floats(n, 3) : Floats{}};
      const auto device_x = upload(x);
      const auto gamma = upload(weights.gamma);
      const auto beta = upload(weights.beta);
      const auto gather = upload(std::vector<int32_t>{3, 0, 2});
      for (const bool bf16 : {false, true}) {
        Floats expected;
        for (const size_t row : {3u, 0u, 2u}) {
          const Floats y = reference::normalise(config, weights, row_of(x, row, n), bf16);
          expected.insert(expected.end(), y.begin(), y.end());
        }
        const auto wide = upload(Floats(expected.size(), NAN));
        const auto narrow = unwritten_rows(tokens, width);
        NormArgs args{.x = device_x.data(), .gather = gather.data(), .gamma = gamma.data()};
        args.beta = centred ? beta.data() : nullptr;
        args.y = bf16 ? Inputs{narrow.data(), round_up(width, kTile), true} : Inputs{wide.data(), width, false};
        args.tokens = tokens;
        args.width = width;
        args.epsilon = static_cast<float>(config.norm_epsilon);
        args.centred = centred;
        normalise(args, nullptr);
        EXPECT_TRUE(same_bits(bf16 ? bf16_rows(narrow, width) : download(wide), expected))
            << "width " << width << ", centred " << centred << ", bf16 " << bf16;
      }
    }
  }
}

// Over the whole range of exponents: exp, sigmoid and erf are inside.
TEST_F(ElementwiseKernel, ActivationsGiveTheBitsOfTheReference) {
  const int width = 1500;
  const int tokens = 2;
  Floats factors{0.37f, 2.5f};
  for (const auto activation :
       {Activation::kSwiglu, Activation::kSquaredRelu, Activation::kGeluErf, Activation::kGeluTanh}) {
    const int columns = width * (activation == Activation::kSwiglu ? 2 : 1);
    Floats fc1 = some_floats(static_cast<size_t>(tokens) * static_cast<size_t>(columns), 4);
    for (size_t i = 0; i < fc1.size(); ++i) fc1[i] = std::ldexp(fc1[i], static_cast<int>(i % 60) - 40);
    const auto device_fc1 = upload(fc1);
    const auto factor = upload(factors);
    for (const bool bf16 : {false, true}) {
      Floats expected;
      for (size_t t = 0; t < tokens; ++t) {
        const Floats y =
            reference::activate(activation, row_of(fc1, t, static_cast<size_t>(columns)), factors[t], bf16);
        expected.insert(expected.end(), y.begin(), y.end());
      }
      const auto wide = upload(Floats(expected.size(), NAN));
      const auto narrow = unwritten_rows(tokens, width);
      ActivateArgs args{.activation = activation, .fc1 = device_fc1.data(), .factor = factor.data()};
      args.y = bf16 ? Inputs{narrow.data(), round_up(width, kTile), true} : Inputs{wide.data(), width, false};
      args.tokens = tokens;
      args.width = width;
      activate(args, nullptr);
      EXPECT_TRUE(same_bits(bf16 ? bf16_rows(narrow, width) : download(wide), expected))
          << "activation " << static_cast<int>(activation) << ", bf16 " << bf16;
    }
  }
}

TEST_F(ElementwiseKernel, EmbeddingAddsTheRowOfThePosition) {
  const int width = 37;
  const auto n = static_cast<size_t>(width);
  const Floats words = some_floats(10 * n, 5);
  const Floats positions = some_floats(6 * n, 6);
  const auto device_words = upload(words);
  const auto device_positions = upload(positions);
  const auto ids = upload(std::vector<int32_t>{9, 0, 4});
  const auto where = upload(std::vector<int32_t>{5, 1, 1});
  const auto x = upload(Floats(3 * n, NAN));
  embed({.words = {device_words.data(), 10, width, Number::kFloat32},
         .positions = {device_positions.data(), 6, width, Number::kFloat32},
         .ids = ids.data(),
         .where = where.data(),
         .x = x.data(),
         .tokens = 3},
        nullptr);
  Floats expected;
  for (const auto& [id, position] : {std::pair{9u, 5u}, {0u, 1u}, {4u, 1u}}) {
    for (size_t i = 0; i < n; ++i) expected.push_back(words[id * n + i] + positions[position * n + i]);
  }
  EXPECT_TRUE(same_bits(download(x), expected));
}

// Two tokens of three experts; `normed`: with the norm that follows.
void expect_added(int hidden, bool gated, bool normed) {
  const int topk = 3;
  const auto n = static_cast<size_t>(hidden);
  const Floats experts = some_floats(2 * topk * n, 7);
  const Floats shared = some_floats(2 * n, 8);
  const Floats gate{-0.4f, 3.0f};
  const Floats x = some_floats(2 * n, 9);
  const auto device_experts = upload(experts);
  const auto device_shared = upload(shared);
  const auto device_gate = upload(gate);
  Floats expected;
  for (size_t i = 0; i < 2 * n; ++i) {
    float total = 0;
    for (size_t k = 0; k < topk; ++k) total += experts[(i / n * topk + k) * n + i % n];
    const float factor = arithmetic::sigmoid<arithmetic::Single>(gate[i / n]);
    total += gated ? shared[i] * factor : shared[i];
    expected.push_back(x[i] + total);
  }
  const auto y = upload(x);
  AddExpertsArgs args{.experts = device_experts.data(), .shared = device_shared.data()};
  args.gate = gated ? device_gate.data() : nullptr;
  args.x = y.data();
  args.tokens = 2;
  args.hidden = hidden;
  args.topk = topk;
  const auto gamma = upload(some_floats(n, 10));
  const auto stride = static_cast<size_t>(round_up(hidden, kTile));
  const auto after = upload(std::vector<uint16_t>(2 * stride, 0x7fff));
  const auto wanted = upload(std::vector<uint16_t>(2 * stride, 0x7fff));
  NormArgs norm{.x = y.data(), .gamma = gamma.data()};
  norm.y = {after.data(), static_cast<int>(stride), true};
  norm.tokens = 2;
  norm.width = hidden;
  norm.epsilon = 1e-5f;
  add_experts(args, normed ? &norm : nullptr, nullptr);
  EXPECT_TRUE(same_bits(download(y), expected)) << "hidden " << hidden << ", gated " << gated;
  if (!normed) return;
  norm.y.data = wanted.data();
  normalise(norm, nullptr);
  EXPECT_TRUE(same_bits(download(after), download(wanted))) << "hidden " << hidden << ", gated " << gated;
}

TEST_F(ElementwiseKernel, ExpertsAreAddedAscendingThenTheSharedExpertThenTheResidual) {
  for (const int hidden : {70, 72, 2048, 14000}) {  // 14,000: more than a block keeps
    for (const bool gated : {false, true}) {
      for (const bool normed : {false, true}) expect_added(hidden, gated, normed);
    }
  }
}

}  // namespace
}  // namespace assay::cuda
