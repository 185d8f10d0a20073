// The numbers on the command line of `assay bench`.
#pragma once

#include <boost/program_options.hpp>
#include <cstdint>
#include <string>
#include <vector>

#include "assay/status.h"
#include "backends/model/config/model_config.h"

namespace assay::cli {

struct BenchNumbers {
  int rounds = 0;
  int read_threads = 0;
  uint32_t steps = 0;                 // tokens
  std::vector<uint32_t> contexts;     // tokens
  std::vector<uint32_t> concurrency;  // requests
  uint64_t seed = 0;                  // of random weights; only where they are asked for
};

// `what`: decode, prefill or load. All options are checked, whatever is measured: kInvalid with the option, what was
// given and what is expected.
Result<BenchNumbers> read_bench_numbers(const std::string& what, const boost::program_options::variables_map& values);

// Whether the model has learned positions for what is to be measured; else kInvalid.
Status check_positions(const std::string& what, const BenchNumbers& numbers, const model::ModelConfig& config);

}  // namespace assay::cli
