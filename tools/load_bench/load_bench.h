// How fast a checkpoint is loaded, beside what its files give to threads that only read them.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "assay/status.h"

namespace assay::tools {

// What is measured: open() loads the model, close() releases it again; only open() is timed.
struct Loader {
  std::function<Status()> open;
  std::function<void()> close;
};

struct LoadBenchOptions {
  int threads = 16;   // of the raw read
  int rounds = 2;     // raw read and load in turn
  bool cold = false;  // the files are dropped from the cache before each read and each load; else they are read once
};

struct LoadRound {
  double raw_seconds = 0;
  double load_seconds = 0;
};

struct LoadFigures {
  uint64_t file_bytes = 0;        // of the checkpoint's data files, which a raw read reads
  uint64_t tensor_bytes = 0;      // of all of its tensors
  double first_load_seconds = 0;  // before the rounds, with the device's start in it
  std::vector<LoadRound> rounds;
  uint64_t peak_bytes = 0;  // host memory that a load took at most, the files' mapping apart (memory_peak.h)

  double best_raw_gb_per_s() const;   // of file_bytes, 1e9 bytes a second
  double best_load_gb_per_s() const;  // of tensor_bytes
  double fraction() const { return best_load_gb_per_s() / best_raw_gb_per_s(); }
};

// `folder`: of a checkpoint. Fails as Checkpoint::open, read_raw, drop_from_cache and open() do.
Result<LoadFigures> measure_load(const std::string& folder, const Loader& loader, const LoadBenchOptions& options);

}  // namespace assay::tools
