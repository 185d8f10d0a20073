// From the event files of a run to the form of golden files, by Megatron-LM's rules.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "assay/status.h"
#include "core/train/event_file.h"
#include "core/train/metrics.h"

namespace assay::train {

struct Grid {
  int64_t train_iters = 100;
  int64_t step_size = 1;  // step 1, then multiples of it; >= 1
  bool merge = false;     // all event files, the first value of a step counts; else the first file alone
};

// Files of a convergence test ("release"): all, every fifth step.
Grid convergence_grid(int64_t train_iters);

// The event files of a folder and of its subfolder "results" (`events*tfevents*`), in the order in which they were last
// written, those without scalars left out. A corrupt file is in the list with what could be read and its `corrupt`.
// Fails with kNotFound (no such file there, or none with scalars) or kInfra.
Result<std::vector<EventFile>> read_event_folder(const std::string& folder, ScalarForms forms);

// `files` in order, not empty. Values are rounded to 5 decimals; metrics that no golden file has are left out.
MetricSet extract(const std::vector<EventFile>& files, const Grid& grid);

// Both; notes tell of torn records and of files that were not looked at. Fails as read_event_folder does, and with
// kInvalid on a corrupt file that counts.
Result<MetricSet> extract_folder(const std::string& folder, const Grid& grid, ScalarForms forms);

}  // namespace assay::train
