// Linear layers on the device: fp32 against the reference's dot bit for bit; bf16 against a sum in double, and against
// itself in other company bit for bit.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "backends/cuda/kernels/hopper/linear_hopper.h"
#include "backends/cuda/kernels/linear_any.h"
#include "backends/cuda/kernels/linear_few.h"
#include "backends/cuda/kernels/linear_many.h"
#include "backends/cuda/kernels/pack.h"
#include "backends/cuda/kernels/routing.h"
#include "backends/cuda/runtime/buffer.h"
#include "backends/cuda/testing/on_device.h"
#include "backends/reference/arithmetic/dot.h"
#include "backends/reference/arithmetic/formats.h"

namespace assay::cuda {
namespace {

using Floats = std::vector<float>;
using Bits = std::vector<uint16_t>;

class LinearKernel : public OnDevice {};

Bits narrow(const Floats& values) {
  Bits bits;
  for (const float value : values) bits.push_back(arithmetic::to_bf16(value));
  return bits;
}

float row_dot(const Floats& w, size_t row, const Floats& x, size_t token, size_t cols) {
  return arithmetic::dot(&w[row * cols], &x[token * cols], cols);
}

Floats not_written(size_t count) { return Floats(count, NAN); }

// fp32 dots of every row and token: (tokens, rows).
Floats plain(const Floats& w, const Floats& x, size_t rows, size_t cols) {
  Floats y;
  for (size_t t = 0; t < x.size() / cols; ++t) {
    for (size_t r = 0; r < rows; ++r) y.push_back(row_dot(w, r, x, t, cols));
  }
  return y;
}

// The weights (rows, cols) as tiles.
DeviceBuffer<uint16_t> tiles_of(const Bits& w, Matrix shape) {
  const auto source = upload(w);
  auto tiles = upload(Bits(static_cast<size_t>(shape.bytes()) / 2));
  shape.data = tiles.data();
  const int half = shape.rows / 2;  // in two parts, as a loader does
  pack_tiles({shape, source.data(), 0, half}, nullptr);
  pack_tiles({shape, source.data() + half * shape.cols, half, shape.rows - half}, nullptr);
  check(cudaDeviceSynchronize(), "pack_tiles");
  return tiles;
}

// (tokens, cols) as bf16 rows of whole tiles, zeros behind.
Bits padded(const Bits& x, int cols) {
  const auto width = static_cast<size_t>(cols);
  const auto stride = static_cast<size_t>(round_up(cols, kTile));
  Bits rows(x.size() / width * stride);
  for (size_t i = 0; i < x.size(); ++i) rows[i / width * stride + i % width] = x[i];
  return rows;
}

// The tensor-core layer without bias: (tokens, rows).
using Version = void (*)(const LinearArgs&, cudaStream_t);
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

void on_wgmma(const LinearArgs& args, cudaStream_t stream) {
  const LinearJob job{args, {}};
  if (hopper_takes({&job, 1})) {
    const HopperJob on_hopper{job};
    linear_hopper({&on_hopper, 1}, stream);
  } else {
    linear_many(args, stream);  // another GPU
  }
}

struct NamedVersion {
  Version version;
  const char* name;
};
constexpr NamedVersion kVersions[] = {{linear_few, "few"}, {linear_many, "many"}, {on_wgmma, "wgmma"}};

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

// Slots of each expert; the sizes at which tiles begin to differ.
const std::vector<int> kGroupSizes = {7, 0, 129, 1, 8, 9, 127, 65, 0, 260};

// Which expert each slot goes to, so that expert e has sizes[e] of them, scattered.
std::vector<uint16_t> scattered(const std::vector<int>& sizes) {
  std::vector<uint16_t> chosen;
  std::vector<int> left = sizes;
  for (size_t e = 0; static_cast<int>(chosen.size()) < std::accumulate(sizes.begin(), sizes.end(), 0);
       e = (e + 1) % sizes.size()) {
    if (left[e]-- > 0) chosen.push_back(static_cast<uint16_t>(e));
  }
  return chosen;
}

// What a layer of experts is made of, on the device.
struct Experts {
  Experts(const std::vector<int>& sizes, Matrix shape, int topk, uint32_t seed) : matrix(shape) {
    const auto count = static_cast<int>(sizes.size());
    const std::vector<uint16_t> choices = scattered(sizes);
    slots = static_cast<int>(choices.size());
    chosen = upload(choices);
    storage = upload(std::vector<int32_t>(static_cast<size_t>(group_ints(slots, count))));
    groups =
        group_slots({.chosen = chosen.data(), .slots = slots, .experts = count, .storage = storage.data()}, nullptr);
    Bits all;
    for (int e = 0; e < count; ++e) {
      const Bits w = narrow(some_floats(static_cast<size_t>(shape.rows * shape.cols), seed + static_cast<uint32_t>(e)));
      const Bits one = download(tiles_of(w, shape));
      all.insert(all.end(), one.begin(), one.end());
    }
    tiles = upload(all);
    matrix.data = tiles.data();
    const int inputs = (slots + topk - 1) / topk;
    x = upload(padded(narrow(some_floats(static_cast<size_t>(inputs * shape.cols), seed + 100)), shape.cols));
    bias = upload(some_floats(static_cast<size_t>(count * shape.rows), seed + 101));
    factor = upload(some_floats(static_cast<size_t>(slots), seed + 102));
    args.weight = matrix;
    args.x = {x.data(), round_up(shape.cols, kTile), true};
    args.x_divisor = topk;
    args.y_stride = shape.rows;
    args.tokens = slots;
    args.groups = &groups;
  }

  Matrix matrix;
  int slots = 0;
  DeviceBuffer<uint16_t> chosen, tiles, x;
  DeviceBuffer<int32_t> storage;
  DeviceBuffer<float> bias, factor;
  Groups groups;
  LinearArgs args;
};

TEST_F(LinearKernel, EveryVersionGivesExpertsTheBitsOfTheSimpleKernel) {
  for (const int topk : {1, 3}) {
    const Experts experts(kGroupSizes, {nullptr, 150, 90, Number::kBfloat16, true}, topk, 14);
    for (const bool rounded : {false, true}) {
      const auto run = [&](Version version) {
        const auto y = upload(some_floats(static_cast<size_t>(experts.slots * 150), 18));
        LinearArgs args = experts.args;
        args.y = y.data();
        args.rounded = rounded;
        args.onto = rounded;
        args.bias = experts.bias.data();
        args.bias_factor = rounded ? nullptr : experts.factor.data();
        version(args, nullptr);
        return download(y);
      };
      const Floats simple = run(linear);
      for (const NamedVersion& v : kVersions) {
        EXPECT_TRUE(same_bits(run(v.version), simple)) << "topk " << topk << ", rounded " << rounded << ", " << v.name;
      }
    }
  }
}

// Experts of these sizes and a shared MLP, together or each layer and activation by itself: both results.
Floats mlps(const std::vector<int>& sizes, int width, bool together) {
  constexpr int kHidden = 300;
  constexpr int kTopk = 3;
  const Matrix into{nullptr, 2 * width, kHidden, Number::kBfloat16, true, true};
  const Matrix out{nullptr, 150, width, Number::kBfloat16, true};
  const std::vector<int> all{100};
  const Experts layers[2][2] = {{{sizes, into, kTopk, 21}, {sizes, out, 1, 22}},
                                {{all, into, 1, 23}, {all, out, 1, 24}}};
  const auto stride = static_cast<size_t>(round_up(width, kTile));
  const auto slots = static_cast<size_t>(layers[0][0].slots);
  const auto fc1 = upload(not_written(std::max(slots, size_t{100}) * static_cast<size_t>(2 * width)));
  const auto sorted = upload(Bits(slots * static_cast<size_t>(round_up(kHidden, kTile)), 0x7fff));
  std::vector<DeviceBuffer<uint16_t>> inner;
  std::vector<DeviceBuffer<float>> y;
  std::vector<MlpJob> jobs;
  for (const Experts(&layer)[2] : layers) {
    const auto tokens = static_cast<size_t>(layer[0].slots);
    inner.push_back(upload(Bits(tokens * stride, 0x7fff)));
    y.push_back(upload(not_written(tokens * 150)));
    MlpJob job{{layer[0].args, {}}, layer[1].args, {}};
    job.first.linear.y = fc1.data();
    job.first.activate.fc1 = fc1.data();
    job.first.activate.factor = jobs.empty() ? layer[0].factor.data() : nullptr;
    job.first.activate.y = {inner.back().data(), static_cast<int>(stride), true};
    job.first.activate.tokens = layer[0].slots;
    job.first.activate.width = width;
    job.second.x = job.first.activate.y;
    job.second.y = y.back().data();
    if (jobs.empty()) {
      job.sorted = {sorted.data(), round_up(kHidden, kTile), true};
    } else {
      job.first.linear.groups = job.second.groups = nullptr;
    }
    jobs.push_back(job);
  }
  if (together) {
    linear_mlps(jobs, nullptr);
  } else {
    for (const MlpJob& job : jobs) {
      linear(job.first.linear, nullptr);
      activate(job.first.activate, nullptr);
      linear(job.second, nullptr);
    }
  }
  Floats results = download(y[0]);
  const Floats more = download(y[1]);
  results.insert(results.end(), more.begin(), more.end());
  return results;
}

TEST_F(LinearKernel, MlpsTogetherGiveTheBitsOfTheirLayersOneAfterTheOther) {
  const std::vector<int> few{7, 0, 13, 1, 8, 9};                  // an expert; not sorted before the first layer
  const std::vector<int> many{300, 170, 0, 1, 257, 128, 9, 500};  // blocks in fours
  for (const std::vector<int>& sizes : {few, kGroupSizes, many}) {
    for (const int width : {32, 144, 200}) {  // 200: a matrix whose activation stays a step of its own
      const Floats apart = mlps(sizes, width, false);
      EXPECT_EQ(std::count_if(apart.begin(), apart.end(), [](float v) { return v != v; }), 0);
      EXPECT_TRUE(same_bits(mlps(sizes, width, true), apart)) << "width " << width << ", experts " << sizes.size();
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
