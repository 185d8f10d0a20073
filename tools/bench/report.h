// What `assay bench` prints.
#pragma once

#include <string>
#include <vector>

#include "backends/model/config/model_config.h"
#include "tools/bench/opened.h"
#include "tools/bench/samples.h"
#include "tools/bench/sequence.h"
#include "tools/bench/work.h"

namespace assay::bench {

// One step of decoding, for `requests` sequences at a time.
struct DecodeRow {
  uint32_t requests = 1;
  uint32_t context = 0;  // tokens before the first step
  Samples step;          // seconds of a step, mean of a round
  StepWork work;         // of a step in the middle
  double experts = 0;    // distinct ones that a step chooses in a mixture; 0: no mixture
};

struct PrefillRow {
  uint32_t tokens = 0;
  Samples prompt;  // seconds of a prompt
  double flops = 0;
};

struct KernelTable {
  std::string what;  // "step at context 128, one after the other"
  std::vector<KernelRow> rows;
};

struct BenchReport {
  model::ModelConfig config;
  std::string backend;
  std::string device;
  double weight_bytes = 0;
  double open_seconds = 0;
  MachineFacts machine;  // the best bandwidth and the most memory that were seen
  uint64_t host_peak = 0;
  std::vector<DecodeRow> decode = {};
  std::vector<PrefillRow> prefill = {};
  std::vector<KernelTable> kernels = {};
};

std::string to_text(const BenchReport& report);

// One JSON object a line: {"what":"model"|"decode"|"engine"|"prefill"|"kernel"|"memory", ...}; "ms" are medians.
std::string to_json_lines(const BenchReport& report);

}  // namespace assay::bench
