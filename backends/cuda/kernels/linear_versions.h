// Test support: matrices and vectors of linear layers on the device, and the versions that must agree.
#pragma once

#include <cmath>
#include <vector>

#include "backends/cuda/kernels/hopper/linear_hopper.h"
#include "backends/cuda/kernels/linear_few.h"
#include "backends/cuda/kernels/linear_many.h"
#include "backends/cuda/kernels/pack.h"
#include "backends/cuda/runtime/buffer.h"
#include "backends/cuda/testing/on_device.h"
#include "backends/reference/arithmetic/formats.h"

namespace assay::cuda {

using Floats = std::vector<float>;
using Bits = std::vector<uint16_t>;

class LinearKernel : public OnDevice {};

inline Bits narrow(const Floats& values) {
  Bits bits;
  for (const float value : values) bits.push_back(arithmetic::to_bf16(value));
  return bits;
}

inline Floats not_written(size_t count) { return Floats(count, NAN); }

// The weights (rows, cols) as tiles.
inline DeviceBuffer<uint16_t> tiles_of(const Bits& w, Matrix shape) {
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
inline Bits padded(const Bits& x, int cols) {
  const auto width = static_cast<size_t>(cols);
  const auto stride = static_cast<size_t>(round_up(cols, kTile));
  Bits rows(x.size() / width * stride);
  for (size_t i = 0; i < x.size(); ++i) rows[i / width * stride + i % width] = x[i];
  return rows;
}

using Version = void (*)(const LinearArgs&, cudaStream_t);

inline void on_wgmma(const LinearArgs& args, cudaStream_t stream) {
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
inline constexpr NamedVersion kVersions[] = {{linear_few, "few"}, {linear_many, "many"}, {on_wgmma, "wgmma"}};

}  // namespace assay::cuda
