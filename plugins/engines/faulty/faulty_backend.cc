#include "plugins/engines/faulty/faulty_backend.h"

#include <algorithm>
#include <span>
#include <utility>

#include "assay/sdk.hpp"

namespace assay::engines {
namespace {

FaultyModel& of(void* handle) { return *static_cast<FaultyModel*>(handle); }

Status pass_on(const FaultyModel& model, void* cache, const assay_forward& batch, uint64_t* ticket) {
  return sdk::call(model.backend->forward, model.model, cache, &batch, ticket);
}

Status off_by_one(const FaultyModel& model, void* cache, assay_forward batch, uint64_t* ticket) {
  std::vector<assay_run> runs(batch.runs, batch.runs + batch.run_count);
  for (assay_run& run : runs) {
    if (run.count == 1 && run.start > 0) --run.start;
  }
  batch.runs = runs.data();
  return pass_on(model, cache, batch, ticket);
}

Status stale_kv(FaultyModel* model, void* cache, assay_forward batch, uint64_t* ticket) {
  if (Status status = pass_on(*model, cache, batch, ticket); !status.ok()) return status;
  std::vector<assay_run> again;
  std::vector<std::vector<int32_t>> old_ids;
  old_ids.reserve(batch.run_count);
  for (const assay_run& run : std::span(batch.runs, batch.run_count)) {
    if (run.start > 0 || run.ids == nullptr) continue;
    std::vector<int32_t> ids(run.ids, run.ids + run.count);
    old_ids.push_back(std::exchange(model->last_prefill[run.blocks[0]], std::move(ids)));
    if (old_ids.back().empty()) continue;
    assay_run stale{};
    stale.ids = old_ids.back().data();
    stale.count = static_cast<uint32_t>(std::min<size_t>(old_ids.back().size(), run.count));
    stale.blocks = run.blocks;
    stale.block_count = run.block_count;
    again.push_back(stale);
  }
  if (again.empty()) return {};
  batch.runs = again.data();
  batch.run_count = again.size();
  batch.flags |= ASSAY_FORWARD_WAIT;
  return pass_on(*model, cache, batch, ticket);
}

Status forward(FaultyModel* model, void* cache, const assay_forward& batch, uint64_t* ticket) {
  switch (model->fault) {
    case Fault::kStaleKv:
      return stale_kv(model, cache, batch, ticket);
    case Fault::kOffByOnePosition:
      return off_by_one(*model, cache, batch, ticket);
    default:
      return pass_on(*model, cache, batch, ticket);
  }
}

}  // namespace

assay_backend_table faulty_backend(const assay_backend_table& real) {
  assay_backend_table table = real;
  table.size = sizeof(table);
  table.model_info = [](void* handle, assay_model_info* info, assay_error* error) -> int32_t {
    return of(handle).backend->model_info(of(handle).model, info, error);
  };
  table.make_cache = [](void* handle, const assay_cache_spec* spec, void** cache, assay_error* error) -> int32_t {
    return of(handle).backend->make_cache(of(handle).model, spec, cache, error);
  };
  table.forward = [](void* handle, void* cache, const assay_forward* batch, uint64_t* ticket,
                     assay_error* error) -> int32_t {
    return sdk::guarded(error, [&] { return forward(&of(handle), cache, *batch, ticket); });
  };
  table.wait = [](void* handle, uint64_t ticket, assay_error* error) -> int32_t {
    return of(handle).backend->wait(of(handle).model, ticket, error);
  };
  return table;
}

}  // namespace assay::engines
