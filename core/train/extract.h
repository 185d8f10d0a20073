// From the event files of a run to the form of golden files, by Megatron-LM's rules.
#pragma once

#include <cstdint>
#include <optional>
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
// Fails with kNotFound (no such file there, or none with scalars) or as read_file does.
Result<std::vector<EventFile>> read_event_folder(const std::string& folder);

// `files` in order, not empty. Values are rounded to 5 decimals; metrics that no golden file has, however spelled
// (tensorboardX writes lm_loss), are left out. Notes tell of torn records and of files that were not looked at. Fails
// with kInvalid on a corrupt file that counts.
Result<MetricSet> extract(const std::vector<EventFile>& files, const Grid& grid);

// The same as Megatron-LM's reader sees it: simple values alone, names as its goldens spell them, up to where a file is
// damaged. Nothing where its script fails: no scalar at all, or a number that JSON lacks.
std::optional<MetricSet> extract_as_megatron(const std::vector<EventFile>& files, const Grid& grid);

// read_event_folder and extract.
Result<MetricSet> extract_folder(const std::string& folder, const Grid& grid);

}  // namespace assay::train
