// In which order and when requests are sent.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "plugins/engines/openai/options.h"

namespace assay::engines::openai {

struct Arrival {
  size_t place = 0;    // of the request among those submitted together
  double seconds = 0;  // since the first of them may be sent
};

// `count` requests that were submitted together, in the order in which they are sent. Depends on options.order,
// requests_per_second and seed alone; the gaps of a rate are drawn as a Poisson process draws them.
std::vector<Arrival> schedule(size_t count, const OpenaiOptions& options);

}  // namespace assay::engines::openai
