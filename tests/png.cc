#include "tests/png.h"

#include <zlib.h>

#include <cmath>
#include <cstdlib>
#include <string>

#include "tests/program.h"

namespace assay::tests {
namespace {

uint32_t big_endian(const std::string& bytes, size_t at) {
  uint32_t value = 0;
  for (size_t i = 0; i < 4; ++i) value = value << 8 | static_cast<uint8_t>(bytes[at + i]);
  return value;
}

// The filter types of PNG, 9.2 of its specification.
int predicted(int type, int left, int above, int corner) {
  if (type == 1) return left;
  if (type == 2) return above;
  if (type == 3) return (left + above) / 2;
  if (type != 4) return 0;
  const int estimate = left + above - corner;
  const int a = std::abs(estimate - left);
  const int b = std::abs(estimate - above);
  const int c = std::abs(estimate - corner);
  return a <= b && a <= c ? left : b <= c ? above : corner;
}

}  // namespace

Picture read_png(const std::filesystem::path& path) {
  const std::string bytes = read_file(path);
  if (bytes.size() < 33 || bytes.compare(1, 3, "PNG") != 0) return {};
  const size_t channels = bytes[25] == 2 ? 3 : bytes[25] == 6 ? 4 : 0;
  if (bytes[24] != 8 || channels == 0 || bytes[28] != 0) return {};
  Picture picture{.width = big_endian(bytes, 16), .height = big_endian(bytes, 20), .grey = {}};
  std::string packed;
  for (size_t at = 8; at + 12 <= bytes.size();) {
    const size_t length = big_endian(bytes, at);
    if (bytes.compare(at + 4, 4, "IDAT") == 0) packed += bytes.substr(at + 8, length);
    at += length + 12;
  }
  const size_t stride = picture.width * channels;
  std::vector<uint8_t> raw(picture.height * (stride + 1));
  uLongf size = raw.size();
  if (uncompress(raw.data(), &size, reinterpret_cast<const Bytef*>(packed.data()), packed.size()) != Z_OK) return {};
  std::vector<uint8_t> above(stride);
  for (size_t row = 0; row < picture.height; ++row) {
    uint8_t* line = &raw[row * (stride + 1) + 1];
    const int type = line[-1];
    for (size_t i = 0; i < stride; ++i) {
      const int left = i >= channels ? line[i - channels] : 0;
      const int corner = i >= channels ? above[i - channels] : 0;
      line[i] = static_cast<uint8_t>(line[i] + predicted(type, left, above[i], corner));
    }
    above.assign(line, line + stride);
    for (size_t i = 0; i < stride; i += channels) {
      picture.grey.push_back(static_cast<uint8_t>((line[i] * 3 + line[i + 1] * 6 + line[i + 2]) / 10));
    }
  }
  return picture;
}

double Picture::mean() const {
  double sum = 0;
  for (const uint8_t value : grey) sum += value;
  return grey.empty() ? 0 : sum / static_cast<double>(grey.size());
}

double Picture::deviation() const {
  const double middle = mean();
  double sum = 0;
  for (const uint8_t value : grey) sum += (value - middle) * (value - middle);
  return grey.empty() ? 0 : std::sqrt(sum / static_cast<double>(grey.size()));
}

}  // namespace assay::tests
