// Every kernel of every instruction set against the plain operators of the reference, bit for bit, at odd sizes.
#include "backends/cpu/kernels/kernels.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "backends/reference/arithmetic/attend.h"
#include "backends/reference/arithmetic/dot.h"
#include "backends/reference/arithmetic/elementary.h"
#include "backends/reference/arithmetic/formats.h"
#include "backends/reference/arithmetic/vocabulary.h"
#include "backends/reference/operators.h"

namespace assay::cpu {
namespace {

using ::testing::HasSubstr;

// Deterministic values with mixed signs and magnitudes.
class Values {
 public:
  float next() {
    state_ = state_ * 6364136223846793005ull + 1442695040888963407ull;
    const auto unit = static_cast<float>(state_ >> 40) * 0x1p-24f - 0.5f;
    return unit * std::exp2(static_cast<float>((state_ >> 33) % 9) - 4.0f);
  }
  std::vector<float> many(size_t count) {
    std::vector<float> values(count);
    for (float& v : values) v = next();
    return values;
  }

 private:
  uint64_t state_ = 42;
};

bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

// Weights in a stored form, and the floats that they stand for.
struct Stored {
  std::vector<float> exact;
  std::vector<uint16_t> halves;
  Number number;

  Stored(std::vector<float> values, Number form) : exact(std::move(values)), number(form) {
    if (form == Number::kFloat32) return;
    for (float& v : exact) {
      auto bits = arithmetic::to_bf16(v);
      if (form == Number::kFloat16) bits = static_cast<uint16_t>(bits & 0xbfffu);  // any pattern but inf and NaN
      halves.push_back(bits);
      v = form == Number::kBfloat16 ? arithmetic::from_bf16(bits) : arithmetic::from_fp16(bits);
    }
  }
  const std::byte* data() const {
    return number == Number::kFloat32 ? reinterpret_cast<const std::byte*>(exact.data())
                                      : reinterpret_cast<const std::byte*>(halves.data());
  }
  const std::byte* at(size_t element) const { return data() + element * number_size(number); }
};

constexpr Number kForms[] = {Number::kFloat32, Number::kBfloat16, Number::kFloat16};
constexpr size_t kCounts[] = {1, 7, 15, 16, 17, 31, 64, 100, 255, 256, 257, 300, 512, 769, 1811, 2100};

class EveryIsa : public ::testing::TestWithParam<std::string_view> {
 protected:
  void SetUp() override {
    if (!can_run(GetParam())) GTEST_SKIP() << "this processor cannot run " << GetParam();
    kernels_ = *select_kernels(GetParam());
  }
  const Kernels* kernels_ = nullptr;
  Values values_;
};

TEST_P(EveryIsa, MatmulIsTheReferenceDotAtAnyShapeAndStoredForm) {
  for (const size_t cols : kCounts) {
    for (const Number form : kForms) {
      for (const size_t rows : {1u, 3u, 8u, 9u, 21u, 37u}) {
        const Stored weight(values_.many(rows * cols), form);
        for (const size_t tokens : {1u, 2u, 3u, 4u, 5u, 9u, 66u, 259u}) {
          if (tokens > 9 && (rows != 9 && rows != 37)) continue;
          if (tokens > 66 && cols != 300 && cols != 17) continue;
          std::vector<float> x = values_.many(tokens * cols);
          std::vector<float> y(tokens * rows, -1.0f);
          std::vector<float> expected(tokens * rows);
          std::vector<const float*> in;
          std::vector<float*> out;
          for (size_t t = 0; t < tokens; ++t) {
            in.push_back(&x[t * cols]);
            out.push_back(&y[t * rows]);
            for (size_t r = 0; r < rows; ++r) {
              expected[t * rows + r] = arithmetic::dot(&weight.exact[r * cols], in[t], cols);
            }
          }
          const size_t tiles = (tokens + kPackTokens - 1) / kPackTokens;
          std::vector<float> packed(packed_size(tokens, cols), std::nanf(""));
          kernels_->pack({in.data(), tokens, cols, 0, tiles / 2, packed.data()});
          kernels_->pack({in.data(), tokens, cols, tiles / 2, tiles, packed.data()});
          for (const float* source : {static_cast<const float*>(nullptr), static_cast<const float*>(packed.data())}) {
            std::fill(y.begin(), y.end(), -1.0f);
            for (const auto& [begin, end] :
                 {std::pair{size_t{0}, rows / 2}, std::pair{rows / 2, rows}}) {  // as threads
              kernels_->matmul[static_cast<size_t>(form)](
                  {weight.data(), cols, begin, end, in.data(), out.data(), 0, tokens, source});
            }
            ASSERT_TRUE(same_bits(y, expected))
                << cols << " columns, " << rows << " rows, " << tokens << " tokens, form " << static_cast<int>(form)
                << (source != nullptr ? ", packed" : "");
          }
        }
      }
    }
  }
}

TEST_P(EveryIsa, NormsAreTheReferenceNorms) {
  for (const size_t count : kCounts) {
    for (const bool centred : {false, true}) {
      for (const bool rounded : {false, true}) {
        model::ModelConfig config;
        config.norm = centred ? model::Norm::kLayerNorm : model::Norm::kRmsNorm;
        const std::vector<float> x = values_.many(count);
        reference::NormWeights norm{values_.many(count), {}};
        if (centred) norm.beta = values_.many(count);
        std::vector<float> y(count);
        kernels_->normalise({x.data(), norm.gamma.data(), centred ? norm.beta.data() : nullptr, y.data(), count,
                             static_cast<float>(config.norm_epsilon), centred, rounded});
        ASSERT_TRUE(same_bits(y, reference::normalise(config, norm, x, rounded))) << count;
      }
    }
  }
}

TEST_P(EveryIsa, ActivationsAreTheReferenceActivations) {
  const std::pair<Gate, model::Activation> kinds[] = {{Gate::kSwiglu, model::Activation::kSwiglu},
                                                      {Gate::kSquaredRelu, model::Activation::kSquaredRelu},
                                                      {Gate::kGeluErf, model::Activation::kGeluErf},
                                                      {Gate::kGeluTanh, model::Activation::kGeluTanh}};
  for (const auto& [gate, activation] : kinds) {
    for (const size_t count : {1u, 17u, 5000u}) {
      const bool gated = gate == Gate::kSwiglu;
      const std::vector<float> fc1 = values_.many(gated ? 2 * count : count);
      for (const bool rounded : {false, true}) {
        std::vector<float> y(count);
        kernels_->activate({gate, fc1.data(), fc1.data() + (gated ? count : 0), y.data(), count, 0.37f, rounded});
        ASSERT_TRUE(same_bits(y, reference::activate(activation, fc1, 0.37f, rounded)));
      }
    }
  }
}

// Sweeps the vector versions of exp and erf over every 101st float through the activations' building blocks.
TEST_P(EveryIsa, ElementaryFunctionsEqualTheScalarOnesOverTheWholeRange) {
  std::vector<float> x;
  for (uint64_t bits = 0; bits < 0x100000000ull; bits += 65537)
    x.push_back(std::bit_cast<float>(static_cast<uint32_t>(bits)));
  std::erase_if(x, [](float v) { return std::isnan(v); });
  for (const auto& [gate, activation] : {std::pair{Gate::kGeluErf, model::Activation::kGeluErf},
                                         std::pair{Gate::kGeluTanh, model::Activation::kGeluTanh}}) {
    std::vector<float> y(x.size());
    kernels_->activate({gate, x.data(), nullptr, y.data(), x.size(), 1.0f, false});
    const std::vector<float> expected = reference::activate(activation, x, 1.0f, false);
    for (size_t i = 0; i < x.size(); ++i) {
      if (std::isnan(expected[i])) {
        ASSERT_TRUE(std::isnan(y[i])) << x[i];
      } else {
        ASSERT_EQ(std::bit_cast<uint32_t>(y[i]), std::bit_cast<uint32_t>(expected[i])) << x[i];
      }
    }
  }
}

// Several queries over one past, each with its own end: as heads of one token, and as neighbouring tokens.
TEST_P(EveryIsa, AttentionIsTheReferenceAttention) {
  for (const Number form : {Number::kFloat32, Number::kBfloat16}) {
    for (const size_t channels : {8u, 16u, 24u, 64u, 80u, 128u, 272u}) {
      for (const size_t count : {1u, 3u, 16u, 255u, 256u, 257u, 700u}) {
        for (const size_t queries : {1u, 3u, 7u}) {
          const Stored keys(values_.many(count * channels), form);
          const Stored values(values_.many(count * channels), form);
          const std::vector<float> query = values_.many(queries * channels);
          std::vector<size_t> ends;  // the first two end together
          for (size_t q = 0; q < queries; ++q) ends.push_back(count - std::min(count - 1, q / 2 * 5));
          const size_t splits = (count + 255) / 256;
          const size_t size = channels + 2;
          std::vector<float> results(splits * queries * size, std::nanf(""));
          for (size_t s = 0; s < splits; ++s) {
            std::vector<const void*> k;
            std::vector<const void*> v;
            for (size_t j = s * 256; j < count && j < (s + 1) * 256; ++j) {
              k.push_back(keys.at(j * channels));
              v.push_back(values.at(j * channels));
            }
            std::vector<const float*> in;
            std::vector<size_t> counts;
            std::vector<float*> out;
            for (size_t q = 0; q < queries; ++q) {
              if (ends[q] <= s * 256) continue;
              in.push_back(&query[q * channels]);
              counts.push_back(std::min(ends[q] - s * 256, size_t{256}));
              out.push_back(&results[(s * queries + q) * size]);
            }
            kernels_->attend[static_cast<size_t>(form)](
                {in.data(), counts.data(), in.size(), k.data(), v.data(), channels, 0.3f, out.data()});
          }
          for (size_t q = 0; q < queries; ++q) {
            std::vector<float> y(channels);
            const float* r = &results[q * size];
            kernels_->combine({r + channels, r + channels + 1, r, (ends[q] + 255) / 256, queries * size, queries * size,
                               channels, form == Number::kBfloat16, y.data()});
            const auto expected = reference::attend(
                {&query[q * channels], channels}, ends[q], [&](size_t j) { return &keys.exact[j * channels]; },
                [&](size_t j) { return &values.exact[j * channels]; }, 0.3f, form == Number::kBfloat16);
            ASSERT_TRUE(same_bits(y, expected))
                << channels << " channels, " << ends[q] << " positions, query " << q << " of " << queries;
          }
        }
      }
    }
  }
}

TEST_P(EveryIsa, RotationIsTheReferenceRotation) {
  for (const size_t half : {1u, 5u, 16u, 20u, 64u}) {
    for (const bool interleaved : {false, true}) {
      std::vector<float> head = values_.many(2 * half + 3);
      std::vector<float> expected = head;
      const std::vector<float> cosine = values_.many(half);
      const std::vector<float> sine = values_.many(half);
      reference::rotate(expected, cosine, sine, interleaved);
      kernels_->rotate(head.data(), cosine.data(), sine.data(), half, interleaved);
      ASSERT_TRUE(same_bits(head, expected)) << half;
    }
  }
}

TEST_P(EveryIsa, ConversionsAndSumsAreThoseOfSingleNumbers) {
  for (const size_t count : kCounts) {
    const std::vector<float> x = values_.many(count);
    std::vector<float> y = values_.many(count);
    std::vector<float> expected = y;
    kernels_->add(x.data(), y.data(), count);
    for (size_t i = 0; i < count; ++i) expected[i] = expected[i] + x[i];
    ASSERT_TRUE(same_bits(y, expected));
    kernels_->add_scaled(x.data(), 0.7f, y.data(), count);
    for (size_t i = 0; i < count; ++i) expected[i] = expected[i] + x[i] * 0.7f;
    ASSERT_TRUE(same_bits(y, expected));
    std::vector<uint16_t> narrow(count);
    kernels_->narrow_bf16(y.data(), narrow.data(), count);
    kernels_->round(y.data(), count);
    for (size_t i = 0; i < count; ++i) {
      ASSERT_EQ(narrow[i], arithmetic::to_bf16(expected[i]));
      expected[i] = arithmetic::round_bf16(expected[i]);
    }
    ASSERT_TRUE(same_bits(y, expected));
    for (const Number form : kForms) {
      const Stored stored(values_.many(count), form);
      kernels_->widen[static_cast<size_t>(form)](stored.data(), y.data(), count);
      ASSERT_TRUE(same_bits(y, stored.exact));
    }
  }
}

TEST_P(EveryIsa, SegmentScanIsTheReferenceScan) {
  for (const size_t count : {1u, 2u, 15u, 33u, 1000u, 4096u}) {
    std::vector<float> logits = values_.many(count);
    logits[count / 2] = logits[count - 1] = 9.0f;  // a tie for the largest
    std::vector<float> scratch(count);
    const arithmetic::Segment expected = arithmetic::scan_segment(logits, 0, scratch.data());
    const SegmentResult found = kernels_->scan_segment(logits.data(), count);
    EXPECT_EQ(found.argmax, static_cast<size_t>(expected.argmax));
    EXPECT_EQ(found.top, expected.top);
    EXPECT_EQ(std::bit_cast<uint32_t>(found.total), std::bit_cast<uint32_t>(expected.total)) << count;
  }
}

INSTANTIATE_TEST_SUITE_P(Isas, EveryIsa, ::testing::ValuesIn(built_isas()),
                         [](const auto& isa) { return std::string(isa.param); });

TEST(SelectKernels, AutoPicksTheBestThatRuns) {
  const auto kernels = select_kernels("auto");
  ASSERT_TRUE(kernels.ok());
  EXPECT_TRUE(can_run((*kernels)->name));
}

TEST(SelectKernels, AnUnknownNameIsAnErrorWithTheKnownOnes) {
  const auto kernels = select_kernels("sse9");
  ASSERT_FALSE(kernels.ok());
  EXPECT_THAT(kernels.status().message(), HasSubstr("scalar"));
}

}  // namespace
}  // namespace assay::cpu
