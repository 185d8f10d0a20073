// What a backend is behind the C border: a model that runs batches of token runs on a cache of its own kind.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "assay/plugin_abi.h"
#include "assay/status.h"
#include "backends/model/config/model_config.h"

namespace assay::backend {

// A pool of KV blocks. Block b holds positions; which ones, the block tables say. Content starts undefined.
class Cache {
 public:
  virtual ~Cache() = default;
  uint32_t block_size = 0;  // tokens
  uint32_t block_count = 0;
};

// What the backends behind this border hold in their default options: docs/determinism.md says how, their tests that it
// is so.
inline constexpr uint64_t kOwnLevels = ASSAY_CAP_L1 | ASSAY_CAP_L2 | ASSAY_CAP_L3;

// One loaded model. One thread at a time.
class Model {
 public:
  virtual ~Model() = default;
  virtual const model::ModelConfig& config() const = 0;
  virtual uint64_t weight_bytes() const = 0;
  virtual const std::string& device() const = 0;               // human-readable
  virtual const std::vector<std::string>& notes() const = 0;   // of loading, one line each: worth a warning
  virtual uint64_t determinism() const { return kOwnLevels; }  // levels that hold with its options
  // Fails with kExhausted when memory cannot be had (needed and free bytes are named).
  virtual Result<std::unique_ptr<Cache>> make_cache(const assay_cache_spec& spec) = 0;
  // `runs` passed check_runs and all have ids; routing_margins as in assay_forward. Outputs are written on return.
  virtual Status forward(Cache& cache, std::span<const assay_run> runs, float* const* routing_margins) = 0;
};

// One line about tensors of the checkpoint that the model does not use; no line when there are none.
std::vector<std::string> unused_note(const std::string& checkpoint, const std::vector<std::string>& unused);

// Checks one batch against the contract of assay_run: kInvalid with the run's index, kExhausted for a sequence longer
// than the positions allow. Runs without ids are checked as if they had one valid id.
Status check_runs(const model::ModelConfig& config, const Cache& cache, std::span<const assay_run> runs);

// Parses assay_model_source.options: a JSON object with members out of `known` only; kInvalid otherwise.
// A backend reads its members by the getters; a wrong type is kInvalid with the member named.
class Options {
 public:
  static Result<Options> parse(std::string_view json, std::span<const std::string_view> known);
  Result<std::string> text(std::string_view name, std::string_view fallback) const;
  Result<int64_t> number(std::string_view name, int64_t fallback) const;

 private:
  struct Member {
    std::string name;
    std::string text;
    int64_t number = 0;
    bool is_text = false;
  };
  std::vector<Member> members_;
};

}  // namespace assay::backend
