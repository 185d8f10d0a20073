// A backend table in front of another one: feeds it wrong things, or computes wrongly with what it says.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "assay/plugin_abi.h"
#include "assay/status.h"
#include "plugins/engines/faulty/fault.h"
#include "plugins/engines/faulty/places.h"
#include "plugins/engines/faulty/watched.h"

namespace assay::engines {

// What was seen of the sequence that a row holds; a row is known by its first block.
struct SeenSequence {
  std::vector<int32_t> first_ids;  // of its first run
  std::vector<int32_t> ids;        // of all its runs
  size_t steps = 0;                // runs after the first
  size_t samples = 0;              // tokens drawn
};

// The `model` handle of a faulty table: the real one, and what the fault needs to know. Caches are the real ones.
// Requests are known by assay_sampling.prompt_index. For faults of Family::kCondition that is an index into `watched`,
// which the real backend never sees: it gets Watched::prompt_index.
struct FaultyModel {
  const assay_backend_table* backend = nullptr;
  void* model = nullptr;
  void* wrong_model = nullptr;  // of the same shapes, computes something else; null where the fault needs none
  Fault fault = Fault::kNone;
  Places places = {};
  std::function<void(const std::string& where)> planted = {};  // told each time the fault strikes; may be null

  std::map<int32_t, SeenSequence> rows = {};
  size_t first_rows = 0;       // runs of the first forward
  size_t decode_forwards = 0;  // forwards of single-token runs alone, two at least

  // For faults of Family::kCondition.
  std::vector<Watched> watched = {};
  Circumstances around = {};
  size_t occasions = 0;  // times that the condition held
};

// Faults of the backend strike within this many steps of a sequence, so that short answers are struck too.
inline constexpr size_t kEarlySteps = 8;

// `real` with model_info, make_cache, forward and wait taking a FaultyModel. They pass everything on, except for what
// the fault changes (fault_table.inc). Without a seed: every request, from its first step on, and stale_kv with as many
// positions as the request before had.
assay_backend_table faulty_backend(const assay_backend_table& real);

// One forward on its way through. Parts of it may be sent on several times.
class Passage {
 public:
  Passage(FaultyModel* model, void* cache, const assay_forward& batch, uint64_t* ticket);

  FaultyModel& model() const { return *model_; }
  std::vector<assay_run>& runs() { return runs_; }
  const SeenSequence& seen(size_t run) const;
  bool first(size_t run) const { return runs_[run].start == 0; }
  uint64_t prompt(size_t run) const { return runs_[run].sampling.prompt_index; }
  // For faults of Family::kCondition.
  uint64_t tag(size_t run) const { return batch_.runs[run].sampling.prompt_index; }
  Watched& watched(size_t run) const { return model_->watched.at(tag(run)); }
  bool strikes(size_t run) const { return model_->places.strikes(prompt(run)); }
  // The request is struck, and this is its step (counted from 0) that the seed names, or a later one with `later`.
  bool strikes_at_step(size_t run, bool later) const;
  void planted(size_t run, const std::string& where) const;

  // All runs, with outputs written on return.
  Status send();
  // Some of the runs, to the wrong model where asked for.
  Status send_some(const std::vector<size_t>& which, bool wrong_model);
  // A run of its own; margins: (count, moe_layers) or null.
  Status send_one(const assay_run& run, float* margins);
  float* margins(size_t run) const;

  // Takes note of what went through.
  void remember();

 private:
  Status pass(void* model, const std::vector<assay_run>& runs, std::vector<float*> margins);

  FaultyModel* model_;
  void* cache_;
  const assay_forward& batch_;
  uint64_t* ticket_;
  std::vector<assay_run> runs_;
};

// What the faults do in the place of Passage::send. kUnsupported for a fault of another family.
Status send_with_feeding_fault(Passage* passage);     // Family::kBackend
Status send_with_arithmetic_fault(Passage* passage);  // Family::kArithmetic
Status send_slowly(Passage* passage);                 // Family::kCost, with a delay where there is one
Status send_under_condition(Passage* passage);        // Family::kCondition

// Model configuration for FaultyModel::wrong_model: `config` (JSON of the model) with what the fault gets wrong; empty
// for faults that need none.
std::string wrong_model_config(Fault fault, const std::string& config);

}  // namespace assay::engines
