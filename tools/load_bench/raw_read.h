// How fast files can be read by several threads that do nothing else: the yardstick of loading.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "assay/status.h"

namespace assay::tools {

struct RawRead {
  uint64_t bytes = 0;  // of all files
  double seconds = 0;  // from the first byte to the last
};

// Reads every file once, front to back, in pieces of 4 MB that the threads take in turn, each into memory of its own
// that was touched before. threads >= 1. Fails as model::FileReader does.
Result<RawRead> read_raw(const std::vector<std::string>& files, int threads);

}  // namespace assay::tools
