// A model opened on a backend for benchmarks, and what can be said of the machine it runs on.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "core/plugin/registry.h"
#include "core/run/loaded_model.h"
#include "tools/bench/subject.h"
#include "tools/bench/temporary_folder.h"

namespace assay::bench {

struct OpenRequest {
  std::string backend;                  // name, or "auto"
  std::string options;                  // JSON object; empty: {}
  std::optional<uint64_t> random = {};  // seed of random weights; unset: the subject's checkpoint
};

struct MachineFacts {
  double read_bandwidth = 0;  // bytes a second
  uint64_t memory_used = 0;   // bytes of the device, by everyone; 0: the backend runs in the host's memory
  uint64_t memory_total = 0;  // bytes of the device; 0 likewise
};

// For one thread. Move-only.
class Opened {
 public:
  // Random weights: by the backend's option `weights` where it has one, else through a checkpoint that is written to
  // the temporary folder and removed again. Fails as LoadedModel::load does, or with the line of what is wrong.
  static Result<Opened> open(const Subject& subject, const OpenRequest& request, plugin::PluginRegistry& registry);

  const run::LoadedModel& model() const { return model_; }
  const model::ModelConfig& config() const { return config_; }
  const std::string& backend() const { return backend_; }
  double seconds() const { return seconds_; }  // of opening

  // Bytes of a stored weight, from what the weights take in all.
  double number() const;

  bool measures_device() const { return measures_device_; }

  // Measures the device, or this host's memory with all of its threads where the backend measures nothing.
  Result<MachineFacts> machine() const;

 private:
  Result<MachineFacts> device() const;

  run::LoadedModel model_;
  model::ModelConfig config_;
  std::string backend_;
  double seconds_ = 0;
  bool measures_device_ = false;            // the backend tells of its device
  std::optional<TemporaryFolder> written_;  // checkpoint of random weights
};

// Bytes of host memory that this process has held at most.
uint64_t host_peak();

}  // namespace assay::bench
