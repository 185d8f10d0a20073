// The weights of a group, opened once on a backend.
#pragma once

#include <memory>
#include <string>

#include "assay/plugin_abi.h"
#include "assay/status.h"
#include "core/plugin/registry.h"
#include "core/run/worker_plan.h"

namespace assay::run {

// A model opened on a backend; closed when destroyed. Without a backend, everything is empty. Move-only.
class LoadedModel {
 public:
  // Finds the backend of the plan and opens the model on it. Fails with the code of what failed: kInvalid, kNotFound
  // and kUnsupported mean that the input is wrong, kInfra and kExhausted that this machine could not do it.
  static Result<LoadedModel> load(const WorkerPlan& plan, plugin::PluginRegistry& registry);

  const assay_backend_table* backend() const { return backend_; }  // null: none
  const plugin::Plugin* plugin() const { return plugin_; }         // of the backend; null: none
  void* model() const { return model_.get(); }
  const std::string& config_json() const { return config_json_; }
  const std::string& tokenizer_json() const { return tokenizer_json_; }
  const std::string& device() const { return device_; }          // "cpu avx512 x2"; "" without a backend
  const std::string& arithmetic() const { return arithmetic_; }  // "fp32", "bf16"; "" without a backend
  const std::string& checkpoint() const { return checkpoint_; }
  uint64_t weight_bytes() const { return weight_bytes_; }
  int vocab_size() const { return vocab_size_; }                // columns of the logits; 0 without a backend
  int max_positions() const { return max_positions_; }          // of a sequence; 0: no limit, or no backend
  bool routes() const { return routes_; }                       // some layer is a mixture of experts
  int32_t logits_mantissa() const { return logits_mantissa_; }  // bits, hidden one included; 0: not known
  // ASSAY_CAP_L1 to L3 that hold with the options it was opened with; of a plugin older than ABI 1.2: its capability
  // bits.
  uint64_t levels() const { return levels_; }

 private:
  struct Close {
    const assay_backend_table* table;
    void operator()(void* model) const { table->close(model); }
  };

  Status open(const WorkerPlan& plan, const plugin::Plugin& plugin);

  const plugin::Plugin* plugin_ = nullptr;
  const assay_backend_table* backend_ = nullptr;
  std::unique_ptr<void, Close> model_;
  std::string config_json_ = "{}";
  std::string tokenizer_json_ = "{}";
  std::string device_;
  std::string arithmetic_;
  std::string checkpoint_;
  uint64_t weight_bytes_ = 0;
  int vocab_size_ = 0;
  int32_t logits_mantissa_ = 0;
  uint64_t levels_ = 0;
  int max_positions_ = 0;
  bool routes_ = false;
};

}  // namespace assay::run
