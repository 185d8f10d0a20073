// What made the results of a case, gathered inside the worker that ran it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "assay/provenance.h"
#include "core/plugin/plugin.h"
#include "core/run/loaded_model.h"
#include "core/run/worker_plan.h"

namespace assay::run {

// For one thread. Everything it gets by reference outlives it.
class Maker {
 public:
  // Digests the plugins' files; a file that cannot be read leaves its member empty.
  Maker(const WorkerPlan& plan, const plugin::Plugin& engine, const LoadedModel& model);

  // Everything but the digests of weights and tokenizer; recorded_at is now. Of an engine that replays, what made the
  // results is not known: its name and build stay empty.
  Provenance provenance(uint64_t requests, uint64_t batch) const;

  // Digests of weights and tokenizer into `provenance`. Reads the whole checkpoint, once in the life of this object.
  // Fails with the reader's status; both members are then empty.
  Status add_digests(Provenance* provenance);

 private:
  struct Digests {
    std::string weights;
    std::string tokenizer;
  };
  Result<Digests> read_digests() const;

  const LoadedModel& model_;
  Provenance known_;
  std::optional<Result<Digests>> digests_;
};

}  // namespace assay::run
