// Layers of experts and whole MLPs on the device: every version, apart or together, bit for bit.
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "backends/cuda/kernels/linear_any.h"
#include "backends/cuda/kernels/linear_versions.h"
#include "backends/cuda/kernels/routing.h"

namespace assay::cuda {
namespace {

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

}  // namespace
}  // namespace assay::cuda
