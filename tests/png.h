// Pictures that a browser made, for tests.
#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

namespace assay::tests {

struct Picture {
  size_t width = 0;  // pixels; 0: the file is no PNG of 8-bit RGB or RGBA without interlace
  size_t height = 0;
  std::vector<uint8_t> grey;  // (height, width) luma, 0 black to 255 white

  double mean() const;
  double deviation() const;  // standard deviation of the grey values: 0 for an empty page
};

Picture read_png(const std::filesystem::path& path);

}  // namespace assay::tests
