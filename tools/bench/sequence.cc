#include "tools/bench/sequence.h"

#include <algorithm>
#include <numeric>

#include "assay/sdk.hpp"
#include "core/run/stopwatch.h"

namespace assay::bench {
namespace {

constexpr uint32_t kCacheBlock = 64;  // tokens
constexpr int kProfiles = 3;

assay_forward forward_of(const assay_run& run) {
  auto forward = sdk::sized<assay_forward>();
  forward.flags = ASSAY_FORWARD_WAIT;
  forward.runs = &run;
  forward.run_count = 1;
  return forward;
}

}  // namespace

Sequence::Sequence(const run::LoadedModel& model, void* cache, uint32_t blocks)
    : model_(&model), cache_(cache, Release{model.backend()}), blocks_(blocks) {
  std::iota(blocks_.begin(), blocks_.end(), 0);
}

Result<Sequence> Sequence::open(const run::LoadedModel& model, uint32_t positions) {
  auto spec = sdk::sized<assay_cache_spec>();
  spec.block_size = kCacheBlock;
  spec.block_count = (positions + kCacheBlock - 1) / kCacheBlock;
  void* cache = nullptr;
  if (Status made = sdk::call(model.backend()->make_cache, model.model(), &spec, &cache); !made.ok()) return made;
  return Sequence(model, cache, spec.block_count);
}

std::vector<int32_t> Sequence::some_ids(uint32_t tokens, uint32_t start) const {
  std::vector<int32_t> ids(tokens);
  const auto vocabulary = static_cast<uint32_t>(std::max(model_->vocab_size(), 1));
  for (uint32_t i = 0; i < tokens; ++i) ids[i] = static_cast<int32_t>((start + i + 1) * 2654435761u % vocabulary);
  return ids;
}

// The next id of the last token, greedy, goes to sampled_.
assay_run Sequence::run_of(const std::vector<int32_t>& ids, uint32_t start) {
  assay_run run{};
  run.ids = ids.data();
  run.count = static_cast<uint32_t>(ids.size());
  run.start = start;
  run.blocks = blocks_.data();
  run.block_count = static_cast<uint32_t>(blocks_.size());
  run.output_rows = 1;
  run.sampling.temperature = 1;
  run.sampling.top_k = 1;
  run.output.sampled = &sampled_;
  return run;
}

Result<double> Sequence::prefill(uint32_t tokens) {
  const std::vector<int32_t> ids = some_ids(tokens, 0);
  const assay_run run = run_of(ids, 0);
  const assay_forward forward = forward_of(run);
  uint64_t ticket = 0;
  const run::Stopwatch watch;
  if (Status done = sdk::call(model_->backend()->forward, model_->model(), cache_.get(), &forward, &ticket);
      !done.ok()) {
    return done;
  }
  if (Status done = sdk::call(model_->backend()->wait, model_->model(), ticket); !done.ok()) return done;
  return watch.seconds();
}

Result<double> Sequence::decode(uint32_t context, uint32_t steps) {
  std::vector<int32_t> ids = some_ids(1, context);
  const run::Stopwatch watch;
  for (uint32_t i = 0; i < steps; ++i) {
    assay_run run = run_of(ids, context + i);
    run.output.sampled_logprob = &logprob_;
    const assay_forward forward = forward_of(run);
    uint64_t ticket = 0;
    if (Status done = sdk::call(model_->backend()->forward, model_->model(), cache_.get(), &forward, &ticket);
        !done.ok()) {
      return done;
    }
    if (Status done = sdk::call(model_->backend()->wait, model_->model(), ticket); !done.ok()) return done;
    ids[0] = sampled_;
  }
  return watch.seconds() / steps;
}

Result<std::vector<KernelRow>> Sequence::profile(uint32_t tokens, uint32_t start) {
  const assay_backend_table* table = model_->backend();
  std::vector<KernelRow> rows;
  if (!ASSAY_KNOWS(table, profile) || table->profile == nullptr) return rows;
  const std::vector<int32_t> ids = some_ids(tokens, start);
  const assay_run run = run_of(ids, start);
  const assay_forward forward = forward_of(run);
  for (int pass = 0; pass < kProfiles; ++pass) {
    const assay_kernel_time* kernels = nullptr;
    size_t count = 0;
    const Status done = sdk::call(table->profile, model_->model(), cache_.get(), &forward, &kernels, &count);
    if (done.code() == StatusCode::kUnsupported) return rows;
    if (!done.ok()) return done;
    if (pass == 0) rows.resize(count);
    for (size_t i = 0; i < std::min(count, rows.size()); ++i) {
      const assay_kernel_time& kernel = kernels[i];
      if (pass > 0 && kernel.seconds >= rows[i].seconds) continue;
      rows[i] = {std::string(sdk::text(kernel.name)), kernel.launches, kernel.bytes, kernel.flops, kernel.seconds};
    }
  }
  return rows;
}

}  // namespace assay::bench
