#include "backends/model/checkpoint/weight_stream.h"

#include <cmath>
#include <numbers>

#include "backends/model/checkpoint/convert.h"

namespace assay::model {
namespace {

constexpr size_t kQuantiles = 65536;

// Standard normal quantiles at (i + 0.5) / 65536, by Newton's method on the upper tail from one to the next.
std::vector<double> make_quantiles() {
  std::vector<double> table(kQuantiles);
  double z = 0;
  for (size_t i = kQuantiles / 2; i < kQuantiles; ++i) {
    const double tail = (static_cast<double>(kQuantiles - i) - 0.5) / kQuantiles;
    for (int step = 0; step < 8; ++step) {
      const double density = std::exp(-z * z / 2) / std::sqrt(2 * std::numbers::pi);
      z += (std::erfc(z / std::numbers::sqrt2) / 2 - tail) / density;
    }
    table[i] = z;
    table[kQuantiles - 1 - i] = -z;
  }
  return table;
}

const std::vector<double>& quantiles() {
  static const std::vector<double> table = make_quantiles();
  return table;
}

// The finaliser of SplitMix64 (Steele, Lea, Flood 2014).
uint64_t mix(uint64_t value) {
  value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9ULL;
  value = (value ^ (value >> 27)) * 0x94d049bb133111ebULL;
  return value ^ (value >> 31);
}

constexpr uint64_t kStep = 0x9e3779b97f4a7c15ULL;  // SplitMix64's increment

}  // namespace

WeightTable make_weight_table(double mean, double std, Dtype dtype) {
  std::vector<float> values(kQuantiles);
  for (size_t i = 0; i < kQuantiles; ++i) values[i] = static_cast<float>(mean + std * quantiles()[i]);
  std::vector<std::byte> table(kQuantiles * dtype_size(dtype));
  convert_elements(reinterpret_cast<const std::byte*>(values.data()), Dtype::kFloat32, table.data(), dtype, kQuantiles);
  return std::make_shared<const std::vector<std::byte>>(std::move(table));
}

WeightStream::WeightStream(uint64_t seed, std::string_view key, WeightTable table, Dtype dtype)
    : stream_(mix(seed + kStep)), dtype_(dtype), table_(std::move(table)) {
  for (char c : key) stream_ = mix(stream_ ^ static_cast<uint8_t>(c)) + kStep;
}

// Element i takes the 16 bits at 16 * (i mod 4) of the hash of i / 4.
template <class T>
void WeightStream::fill_as(int64_t first, int64_t count, T* out) const {
  const T* table = reinterpret_cast<const T*>(table_->data());
  const int64_t end = first + count;
  int64_t i = first;
  const auto one = [&] {
    const uint64_t bits = mix(stream_ + static_cast<uint64_t>(i / 4) * kStep);
    *out++ = table[(bits >> (16 * (i % 4))) & 0xffffU];
    ++i;
  };
  while (i < end && i % 4 != 0) one();
  for (; i + 4 <= end; i += 4, out += 4) {
    const uint64_t bits = mix(stream_ + static_cast<uint64_t>(i / 4) * kStep);
    out[0] = table[bits & 0xffffU];
    out[1] = table[(bits >> 16) & 0xffffU];
    out[2] = table[(bits >> 32) & 0xffffU];
    out[3] = table[bits >> 48];
  }
  while (i < end) one();
}

void WeightStream::fill(int64_t first, int64_t count, void* out) const {
  if (dtype_ == Dtype::kFloat32) {
    fill_as(first, count, static_cast<float*>(out));
  } else {
    fill_as(first, count, static_cast<uint16_t*>(out));
  }
}

}  // namespace assay::model
