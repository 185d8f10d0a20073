// cuBLASLt and cuDNN against the own kernels, and against themselves, on the device.
#include <gmock/gmock.h>
#include <unistd.h>

#include <cmath>
#include <optional>

#include "backends/cuda/kernels/attend_any.h"
#include "backends/cuda/kernels/linear_any.h"
#include "backends/cuda/testing/on_device.h"
#include "backends/cuda/vendor/fast_prefill.h"
#include "backends/cuda/vendor/row_equality.h"
#include "backends/cuda/vendor/testing/some_inputs.h"

namespace assay::cuda::vendor {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr int kMostTokens = 1024;
constexpr float kUntouched = 12345;

struct Dense {
  const char* name;
  int rows;
  int cols;
  bool gated;
};
// Layers of the 16B model, and odd ones.
constexpr Dense kDense[] = {{"qkv", 6144, 2048, false},       {"projection", 2048, 2048, false},
                            {"shared fc1", 5632, 2048, true}, {"shared fc2", 2048, 2816, false},
                            {"output", 32768, 2048, false},   {"small", 48, 80, true}};

// Skips where this build has not the object, which the configuration of the build said.
class WithObject : public OnDevice {
 protected:
  explicit WithObject(const WantedObject& wanted) : wanted_(wanted) {}
  void SetUp() override {
    OnDevice::SetUp();
    if (IsSkipped()) return;
    for (const auto& folder : object_folders()) {
      if (std::filesystem::exists(folder / wanted_.file)) return;
    }
    GTEST_SKIP() << open_object(wanted_, object_folders()).status().message();
  }

 private:
  WantedObject wanted_;
};

class VendorLinear : public WithObject {
 protected:
  VendorLinear() : WithObject(kCublasLt) {}
};

// Results (tokens, rows) of the tokens of `x` from `first` on.
template <class Layer>
std::vector<float> results(const Matrix& matrix, const DeviceBuffer<uint16_t>& x, int first, int tokens,
                           const Layer& layer) {
  DeviceBuffer<float> y =
      upload(std::vector<float>(static_cast<size_t>(tokens) * static_cast<size_t>(matrix.rows), kUntouched));
  LinearArgs args{.weight = matrix};
  args.x = {x.data() + static_cast<ptrdiff_t>(first) * matrix.cols, matrix.cols, true};
  args.y = y.data();
  args.y_stride = matrix.rows;
  args.tokens = tokens;
  layer(args);
  return download(y);
}

TEST_F(VendorLinear, AreTheProductsOfTheOwnKernelsUpToRounding) {
  for (const Dense& d : kDense) {
    const SomeMatrix weight(d.rows, d.cols, d.gated, 5);
    const DeviceBuffer<uint16_t> x = some_bf16(size_t{300} * static_cast<size_t>(d.cols), 7);
    const Result<FastLinear> fast = FastLinear::open(object_folders(), {weight.matrix}, kMostTokens);
    ASSERT_TRUE(fast.ok()) << fast.status().message();
    const auto own = results(weight.matrix, x, 0, 300, [](const LinearArgs& a) { linear_any(a, nullptr); });
    bool taken = false;
    const auto seen = results(weight.matrix, x, 0, 300, [&](const LinearArgs& a) { taken = fast->run(a, nullptr); });
    ASSERT_TRUE(taken) << d.name;
    double worst = 0;
    double largest = 0;
    for (size_t i = 0; i < own.size(); ++i) {
      worst = std::max(worst, std::abs(static_cast<double>(seen[i]) - static_cast<double>(own[i])));
      largest = std::max(largest, std::abs(static_cast<double>(own[i])));
    }
    std::printf("%-10s: largest difference %.3g of %.3g; %s; rows %s\n", d.name, worst, largest,
                fast->plans()[0].text().c_str(), fast->plans()[0].rows_equal ? "equal" : "NOT equal");
    EXPECT_GT(largest, 0);
    EXPECT_LT(worst, 1e-4 * largest) << d.name;
  }
}

// Level L1 always; level L2 exactly where the test at opening says so.
TEST_F(VendorLinear, ARowHasTheSameBitsInAnyCompanyWhereItIsClaimed) {
  for (const Dense& d : kDense) {
    const SomeMatrix weight(d.rows, d.cols, d.gated, 5);
    const DeviceBuffer<uint16_t> x = some_bf16(size_t{300} * static_cast<size_t>(d.cols), 7);
    const Result<FastLinear> fast = FastLinear::open(object_folders(), {weight.matrix}, kMostTokens);
    ASSERT_TRUE(fast.ok()) << fast.status().message();
    const auto run = [&](int first, int tokens) {
      return results(weight.matrix, x, first, tokens, [&](const LinearArgs& a) { fast->run(a, nullptr); });
    };
    const std::vector<float> many = run(0, 300);
    EXPECT_TRUE(same_bits(run(0, 300), many)) << d.name << ", run again";
    if (!fast->plans()[0].rows_equal) continue;
    for (const int tokens : {1, 7, 64, 128, 129, 256, 257, 300}) {
      for (const int first : {0, (300 - tokens) / 2, 300 - tokens}) {
        const auto begin = many.begin() + static_cast<ptrdiff_t>(first) * d.rows;
        const std::vector<float> wanted(begin, begin + static_cast<ptrdiff_t>(tokens) * d.rows);
        EXPECT_TRUE(same_bits(run(first, tokens), wanted)) << d.name << ", " << tokens << " tokens from " << first;
      }
    }
  }
}

TEST_F(VendorLinear, BiasAndRoundingAreApplied) {
  const SomeMatrix weight(64, 128, false, 5);
  const DeviceBuffer<uint16_t> x = some_bf16(70 * 128, 7);
  const DeviceBuffer<float> bias = upload(some_numbers(64, 9));
  const Result<FastLinear> fast = FastLinear::open(object_folders(), {weight.matrix}, kMostTokens);
  ASSERT_TRUE(fast.ok()) << fast.status().message();
  const auto plain = results(weight.matrix, x, 0, 70, [&](const LinearArgs& a) { fast->run(a, nullptr); });
  const auto seen = results(weight.matrix, x, 0, 70, [&](LinearArgs a) {
    a.bias = bias.data();
    a.rounded = true;
    EXPECT_TRUE(fast->run(a, nullptr));
  });
  std::vector<float> wanted = plain;
  const std::vector<float> added = download(bias);
  for (size_t i = 0; i < wanted.size(); ++i) wanted[i] = arithmetic::round_bf16(wanted[i] + added[i % 64]);
  EXPECT_TRUE(same_bits(seen, wanted));
}

TEST_F(VendorLinear, TheResidualIsAddedInPlace) {
  const SomeMatrix weight(64, 128, false, 5);
  const DeviceBuffer<uint16_t> x = some_bf16(70 * 128, 7);
  const Result<FastLinear> fast = FastLinear::open(object_folders(), {weight.matrix}, kMostTokens);
  ASSERT_TRUE(fast.ok()) << fast.status().message();
  std::vector<float> wanted = results(weight.matrix, x, 0, 70, [&](const LinearArgs& a) { fast->run(a, nullptr); });
  const auto seen = results(weight.matrix, x, 0, 70, [&](LinearArgs a) {
    a.onto = true;
    EXPECT_TRUE(fast->run(a, nullptr));
  });
  for (float& y : wanted) y = y + kUntouched;
  EXPECT_TRUE(same_bits(seen, wanted));
}

TEST_F(VendorLinear, WhatDoesNotFitIsLeftToTheOwnKernels) {
  const SomeMatrix weight(64, 128, false, 5);
  const SomeMatrix other(64, 128, false, 5);
  const SomeMatrix odd(62, 128, false, 5);  // rows that are no multiple of 4
  const DeviceBuffer<uint16_t> x = some_bf16(70 * 128, 7);
  const Result<FastLinear> fast = FastLinear::open(object_folders(), {weight.matrix, odd.matrix}, kMostTokens);
  ASSERT_TRUE(fast.ok()) << fast.status().message();
  EXPECT_EQ(fast->plans().size(), 1u);
  const Groups groups;
  const auto untouched = [&](const Matrix& matrix, const auto& change) {
    for (const float y : results(matrix, x, 0, 70, [&](LinearArgs a) {
           change(a);
           EXPECT_FALSE(fast->run(a, nullptr));
         })) {
      if (y != kUntouched) return false;
    }
    return true;
  };
  EXPECT_TRUE(untouched(other.matrix, [](LinearArgs&) {}));
  EXPECT_TRUE(untouched(odd.matrix, [](LinearArgs&) {}));
  EXPECT_TRUE(untouched(weight.matrix, [&](LinearArgs& a) { a.groups = &groups; }));
  EXPECT_TRUE(untouched(weight.matrix, [](LinearArgs& a) { a.x.bf16 = false; }));
  EXPECT_TRUE(untouched(weight.matrix, [](LinearArgs& a) { a.onto = a.rounded = true; }));
}

class RowEquality : public OnDevice {};

// The test behind level L2 can fail: products that depend on the number of tokens, or on the place among them.
TEST_F(RowEquality, IsSeenAndItsLackToo) {
  constexpr int kRows = 48;
  constexpr int kCols = 32;
  const auto product_of = [](const auto& value) {
    return [&value](const GemmShape& shape, const void*, float* y) {
      std::vector<float> results;
      for (int t = 0; t < shape.tokens; ++t) results.insert(results.end(), kRows, value(shape.tokens, t));
      check(cudaMemcpy(y, results.data(), results.size() * sizeof(float), cudaMemcpyHostToDevice), "cudaMemcpy");
    };
  };
  const auto same = [](int, int) { return 1.0f; };
  const auto by_count = [](int tokens, int) { return tokens > 900 ? 1.0f + 0x1p-23f : 1.0f; };
  const auto by_place = [](int tokens, int place) { return place > 0 && place == tokens - 1 ? 1.0f + 0x1p-23f : 1.0f; };
  EXPECT_TRUE(rows_are_equal(kRows, kCols, 1000, product_of(same)));
  EXPECT_FALSE(rows_are_equal(kRows, kCols, 1000, product_of(by_count)));
  EXPECT_FALSE(rows_are_equal(kRows, kCols, 1000, product_of(by_place)));
  EXPECT_TRUE(rows_are_equal(kRows, kCols, 900, product_of(by_count)));
}

class VendorAttention : public WithObject {
 protected:
  VendorAttention() : WithObject(kCudnn) {}
};

struct Heads {
  int channels;
  int groups;
  int per_group;
};

CacheView shape_of(const Heads& h) { return {.groups = h.groups, .channels = h.channels}; }

TEST_F(VendorAttention, IsTheOwnKernelsUpToRounding) {
  for (const Heads& h : {Heads{128, 16, 1}, Heads{128, 2, 4}, Heads{64, 4, 2}}) {
    const AttentionShape heads{h.groups * h.per_group, h.groups, h.channels};
    Result<FastAttention> fast = FastAttention::open(object_folders(), heads, {1, kMostTokens});
    ASSERT_TRUE(fast.ok()) << fast.status().message();
    for (const auto& [start, length] : {std::pair{0, 64}, {0, 128}, {0, 300}, {0, 1024}, {1024, 1124}, {2048, 3072}}) {
      const SomeSequence sequence(shape_of(h), h.per_group, start, length);
      attend_any(sequence.args(), nullptr);
      const std::vector<uint16_t> own = sequence.result();
      check(cudaMemset(sequence.args().y.data, 0xff, own.size() * sizeof(uint16_t)), "cudaMemset");
      ASSERT_TRUE(fast->run(sequence.args(), {0, sequence.count(), start}, nullptr)) << start << " .. " << length;
      const std::vector<uint16_t> seen = sequence.result();
      double worst = 0;
      for (size_t i = 0; i < own.size(); ++i) {
        const double difference = std::abs(static_cast<double>(arithmetic::from_bf16(seen[i])) -
                                           static_cast<double>(arithmetic::from_bf16(own[i])));
        worst = difference <= worst ? worst : difference;  // a NaN stays
      }
      std::printf("%d heads in %d groups of %d channels, positions %d .. %d: largest difference %.3g; %s\n",
                  heads.heads, h.groups, h.channels, start, length, worst, fast->engine().c_str());
      EXPECT_LT(worst, 0.01);  // values are below 1
      ASSERT_TRUE(fast->run(sequence.args(), {0, sequence.count(), start}, nullptr));
      EXPECT_TRUE(same_bits(sequence.result(), seen)) << "run again";
    }
  }
}

TEST_F(VendorAttention, RunsThatItCannotDoAreLeftToTheOwnKernels) {
  const Heads h{128, 2, 4};
  Result<FastAttention> fast = FastAttention::open(object_folders(), {8, 2, 128}, {1, kMostTokens});
  ASSERT_TRUE(fast.ok()) << fast.status().message();
  const SomeSequence sequence(shape_of(h), h.per_group, 100, 228);
  EXPECT_FALSE(fast->run(sequence.args(), {0, 128, 100}, nullptr));
  AttendArgs wide = sequence.args();
  wide.cache.bf16 = false;
  EXPECT_FALSE(fast->run(wide, {0, 128, 0}, nullptr));
}

TEST_F(VendorLinear, AreTakenWithoutCudnnAndANoteSaysWhoseAttentionItIs) {
  const SomeMatrix weight(64, 128, false, 5);
  const auto folder = std::filesystem::temp_directory_path() / ("assay_vendor_device_" + std::to_string(getpid()));
  std::filesystem::create_directories(folder);
  for (const auto& from : object_folders()) {
    if (!std::filesystem::exists(from / kCublasLt.file)) continue;
    std::filesystem::create_symlink(from / kCublasLt.file, folder / kCublasLt.file);
    break;
  }
  const auto fast =
      FastPrefill::open({.bf16 = true, .matrices = {weight.matrix}, .heads = {8, 2, 128}, .most_tokens = 64}, {folder});
  std::filesystem::remove_all(folder);
  ASSERT_TRUE(fast.ok()) << fast.status().message();
  EXPECT_THAT((*fast)->notes(), Contains(HasSubstr("our own attention: cuDNN: no file assay_cudnn.so in")));
  EXPECT_FALSE((*fast)->attend({}, {0, 1024, 0}, nullptr));
}

TEST_F(VendorAttention, WithoutAPlanANoteSaysWhoseAttentionItIs) {
  const SomeMatrix weight(64, 128, false, 5);
  const SomeMatrix odd(62, 128, false, 5);
  const auto fast = FastPrefill::open(
      {.bf16 = true, .matrices = {weight.matrix, odd.matrix}, .heads = {8, 2, 96}, .most_tokens = 64});
  ASSERT_TRUE(fast.ok()) << fast.status().message();
  EXPECT_THAT((*fast)->notes(),
              ElementsAre(HasSubstr("prefill=fast: cuBLASLt "), HasSubstr("prefill=fast: layers of 64 x 128: "),
                          HasSubstr("prefill=fast: layers of 62 x 128 stay with our kernels"),
                          HasSubstr("prefill=fast: our own attention: cuDNN: heads of 96 channels"),
                          HasSubstr("prefill=fast: determinism L1")));
  EXPECT_FALSE((*fast)->attend({}, {}, nullptr));
}

}  // namespace
}  // namespace assay::cuda::vendor
