// Linear layers on the device: fp32 against the reference's dot bit for bit; bf16 against a sum in double, and against
// itself in other company bit for bit.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "backends/cuda/kernels/linear_versions.h"
#include "backends/reference/arithmetic/dot.h"

namespace assay::cuda {
namespace {

float row_dot(const Floats& w, size_t row, const Floats& x, size_t token, size_t cols) {
  return arithmetic::dot(&w[row * cols], &x[token * cols], cols);
}

// fp32 dots of every row and token: (tokens, rows).
Floats plain(const Floats& w, const Floats& x, size_t rows, size_t cols) {
  Floats y;
  for (size_t t = 0; t < x.size() / cols; ++t) {
    for (size_t r = 0; r < rows; ++r) y.push_back(row_dot(w, r, x, t, cols));
  }
  return y;
}

// The tensor-core layer without bias: (tokens, rows).
Floats tensor(const Bits& w, const Bits& x, int rows, int cols, bool gated = false, Version version = linear) {
  Matrix matrix{nullptr, rows, cols, Number::kBfloat16, true, gated};
  const auto tiles = tiles_of(w, matrix);
  matrix.data = tiles.data();
  const int tokens = static_cast<int>(x.size()) / cols;
  const auto inputs = upload(padded(x, cols));
  const auto y = upload(not_written(static_cast<size_t>(tokens * rows)));
  LinearArgs args;
  args.weight = matrix;
  args.x = {inputs.data(), round_up(cols, kTile), true};
  args.y = y.data();
  args.y_stride = rows;
  args.tokens = tokens;
  version(args, nullptr);
  return download(y);
}

TEST(TiledMatrix, EveryElementHasAPlaceOfItsOwn) {
  std::vector<int> taken(48 * 32);
  for (int r = 0; r < 40; ++r) {
    for (int c = 0; c < 20; ++c) ++taken[static_cast<size_t>(tiled_index(r, c, 20))];
  }
  EXPECT_EQ(std::count(taken.begin(), taken.end(), 1), 800);
  EXPECT_EQ(std::count(taken.begin(), taken.end(), 0), 48 * 32 - 800);
  EXPECT_EQ((Matrix{nullptr, 40, 20, Number::kBfloat16, true}.bytes()), 48 * 32 * 2);
}

TEST_F(LinearKernel, PackingPutsEveryElementWhereTiledIndexSays) {
  const int rows = 37;
  const int cols = 53;
  const Bits w = narrow(some_floats(rows * cols, 3));
  const Bits tiles = download(tiles_of(w, {nullptr, rows, cols, Number::kBfloat16, true}));
  Bits back;
  for (int r = 0; r < rows; ++r) {
    for (int c = 0; c < cols; ++c) back.push_back(tiles[static_cast<size_t>(tiled_index(r, c, cols))]);
  }
  EXPECT_TRUE(same_bits(back, w));
  const auto written = static_cast<size_t>(std::count_if(w.begin(), w.end(), [](uint16_t b) { return b != 0; }));
  EXPECT_EQ(static_cast<size_t>(std::count_if(tiles.begin(), tiles.end(), [](uint16_t b) { return b != 0; })), written);
}

TEST_F(LinearKernel, Fp32GivesTheBitsOfTheReferenceForEveryStoredNumber) {
  for (const int cols : {1, 15, 16, 40, 255, 256, 257, 700}) {
    for (const int rows : {1, 5, 33}) {
      for (const int tokens : {1, 3, 8, 9, 33}) {
        const Floats x = some_floats(static_cast<size_t>(tokens * cols), 1);
        Floats w = some_floats(static_cast<size_t>(rows * cols), 2);
        const Floats bias = some_floats(static_cast<size_t>(rows), 3);
        const auto inputs = upload(x);
        const auto device_bias = upload(bias);
        for (const Number number : {Number::kFloat32, Number::kBfloat16, Number::kFloat16}) {
          Bits bits = narrow(w);
          if (number == Number::kFloat16) {
            for (uint16_t& b : bits) b = static_cast<uint16_t>(b % 0x7c00u);  // any finite fp16
          }
          const auto wide = upload(w);
          const auto narrowed = upload(bits);
          Floats values = w;
          for (size_t i = 0; i < w.size() && number != Number::kFloat32; ++i) {
            values[i] = number == Number::kBfloat16 ? arithmetic::from_bf16(bits[i]) : arithmetic::from_fp16(bits[i]);
          }
          Floats expected = plain(values, x, static_cast<size_t>(rows), static_cast<size_t>(cols));
          for (size_t i = 0; i < expected.size(); ++i) expected[i] += bias[i % static_cast<size_t>(rows)];
          const auto y = upload(not_written(expected.size()));
          LinearArgs args;
          const void* data = number == Number::kFloat32 ? static_cast<void*>(wide.data()) : narrowed.data();
          args.weight = {data, rows, cols, number, false};
          args.x = {inputs.data(), cols, false};
          args.y = y.data();
          args.y_stride = rows;
          args.tokens = tokens;
          args.bias = device_bias.data();
          linear(args, nullptr);
          EXPECT_TRUE(same_bits(download(y), expected))
              << rows << " x " << cols << ", " << tokens << " tokens, number " << static_cast<int>(number);
        }
      }
    }
  }
}

TEST_F(LinearKernel, TensorCoresComeCloseToASumInDouble) {
  for (const int cols : {8, 16, 52, 256, 272, 2048}) {
    const int rows = 37;
    const int tokens = 11;
    const Bits w = narrow(some_floats(static_cast<size_t>(rows * cols), 4));
    const Bits x = narrow(some_floats(static_cast<size_t>(tokens * cols), 5));
    const Floats y = tensor(w, x, rows, cols);
    double worst = 0;  // in units of the sum of magnitudes
    for (size_t i = 0; i < y.size(); ++i) {
      double sum = 0;
      double magnitude = 0;
      for (size_t k = 0; k < static_cast<size_t>(cols); ++k) {
        const double product = static_cast<double>(arithmetic::from_bf16(w[i % rows * static_cast<size_t>(cols) + k])) *
                               static_cast<double>(arithmetic::from_bf16(x[i / rows * static_cast<size_t>(cols) + k]));
        sum += product;
        magnitude += std::abs(product);
      }
      const double error = std::abs(static_cast<double>(y[i]) - sum) / magnitude;
      worst = error <= worst ? worst : error;  // a NaN stays
    }
    std::printf("K %5d: largest error %.2e of the sum of magnitudes\n", cols, worst);
    EXPECT_LT(worst, 1e-6) << cols;
  }
}

TEST_F(LinearKernel, ATokenOfTensorCoresDoesNotDependOnItsTileOrPlace) {
  const int rows = 48;
  const int cols = 600;
  const size_t width = cols;
  const Bits w = narrow(some_floats(rows * width, 6));
  const Bits x = narrow(some_floats(33 * width, 7));
  Floats alone;
  for (size_t t = 0; t < 33; ++t) {
    const Floats y = tensor(
        w, Bits(x.begin() + static_cast<ptrdiff_t>(t * width), x.begin() + static_cast<ptrdiff_t>((t + 1) * width)),
        rows, cols);
    alone.insert(alone.end(), y.begin(), y.end());
  }
  for (const size_t batch : {2u, 3u, 7u, 8u, 16u, 33u}) {
    for (size_t first = 0; first + batch <= 33; first += 5) {
      const Bits part(x.begin() + static_cast<ptrdiff_t>(first * width),
                      x.begin() + static_cast<ptrdiff_t>((first + batch) * width));
      const Floats expected(alone.begin() + static_cast<ptrdiff_t>(first * rows),
                            alone.begin() + static_cast<ptrdiff_t>((first + batch) * rows));
      EXPECT_TRUE(same_bits(tensor(w, part, rows, cols), expected)) << batch << " tokens from " << first;
    }
  }
}

TEST_F(LinearKernel, GateAndUpRowsSideBySideGiveTheSameBits) {
  const int rows = 48;
  const int cols = 300;
  const Bits w = narrow(some_floats(static_cast<size_t>(rows * cols), 10));
  const Bits x = narrow(some_floats(static_cast<size_t>(3 * cols), 11));
  EXPECT_TRUE(same_bits(tensor(w, x, rows, cols, true), tensor(w, x, rows, cols, false)));
}

TEST_F(LinearKernel, EveryVersionGivesTheBitsOfTheSimpleKernel) {
  for (const int cols : {8, 16, 40, 64, 250, 256, 272, 600, 1408, 2500}) {
    for (const int rows : {1, 16, 130, 290}) {
      for (const int tokens : {1, 8, 9, 17, 33, 63, 64, 65, 80, 100, 127, 128, 129, 200, 300}) {
        if (tokens % 8 != 1 && cols > 600 && rows != 130) continue;
        const Bits w = narrow(some_floats(static_cast<size_t>(rows * cols), 12));
        const Bits x = narrow(some_floats(static_cast<size_t>(tokens * cols), 13));
        for (const bool gated : {false, true}) {
          if (gated && rows % 16 != 0) continue;
          const Floats simple = tensor(w, x, rows, cols, gated);
          for (const NamedVersion& v : kVersions) {
            EXPECT_TRUE(same_bits(tensor(w, x, rows, cols, gated, v.version), simple))
                << rows << " x " << cols << ", " << tokens << " tokens, gated " << gated << ", version " << v.name;
          }
        }
      }
    }
  }
}

TEST_F(LinearKernel, SoManyRowsThatItemsOfWgmmaAreWideGiveTheSameBits) {
  const int rows = 9000;
  for (const int cols : {256, 272, 336}) {
    for (const int tokens : {9, 30, 45, 60, 75, 90, 110, 128}) {
      const Bits w = narrow(some_floats(static_cast<size_t>(rows * cols), 12));
      const Bits x = narrow(some_floats(static_cast<size_t>(tokens * cols), 13));
      EXPECT_TRUE(same_bits(tensor(w, x, rows, cols, false, on_wgmma), tensor(w, x, rows, cols)))
          << cols << " columns, " << tokens << " tokens";
    }
  }
}

TEST_F(LinearKernel, ARowOfTensorCoresDoesNotDependOnItsPlaceInATile) {
  const int cols = 600;
  const size_t width = cols;
  const Bits row = narrow(some_floats(width, 8));
  const Bits x = narrow(some_floats(5 * width, 9));
  Bits w;
  for (int i = 0; i < 16; ++i) w.insert(w.end(), row.begin(), row.end());
  const Floats y = tensor(w, x, 16, cols);
  for (size_t i = 0; i < y.size(); ++i) EXPECT_EQ(y[i], y[i / 16 * 16]) << i;
}

}  // namespace
}  // namespace assay::cuda
