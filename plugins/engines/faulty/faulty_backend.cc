#include "plugins/engines/faulty/faulty_backend.h"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstring>
#include <thread>
#include <utility>

#include "assay/sdk.hpp"

namespace assay::engines {
namespace {

FaultyModel& of(void* handle) { return *static_cast<FaultyModel*>(handle); }

Status forward(FaultyModel* model, void* cache, const assay_forward& batch, uint64_t* ticket) {
  if (model->fault == Fault::kNone) return sdk::call(model->backend->forward, model->model, cache, &batch, ticket);
  Passage passage(model, cache, batch, ticket);
  const Family family = info_of(model->fault).family;
  Status status;
  if (family == Family::kBackend) {
    status = send_with_feeding_fault(&passage);
  } else if (family == Family::kArithmetic) {
    status = send_with_arithmetic_fault(&passage);
  } else if (family == Family::kCost) {
    status = send_slowly(&passage);
  } else if (family == Family::kCondition) {
    status = send_under_condition(&passage);
  } else {
    status = passage.send();
  }
  if (status.ok()) passage.remember();
  return status;
}

}  // namespace

Passage::Passage(FaultyModel* model, void* cache, const assay_forward& batch, uint64_t* ticket)
    : model_(model), cache_(cache), batch_(batch), ticket_(ticket), runs_(batch.runs, batch.runs + batch.run_count) {
  if (model_->first_rows == 0) model_->first_rows = batch.run_count;
  if (info_of(model_->fault).family != Family::kCondition) return;
  for (size_t i = 0; i < runs_.size(); ++i) runs_[i].sampling.prompt_index = watched(i).prompt_index;
}

const SeenSequence& Passage::seen(size_t run) const { return model_->rows[runs_[run].blocks[0]]; }

bool Passage::strikes_at_step(size_t run, bool later) const {
  if (first(run) || !strikes(run)) return false;
  const size_t step = model_->places.seeded() ? model_->places.pick(kEarlySteps) : 0;
  return seen(run).steps == step || (later && seen(run).steps > step);
}

void Passage::planted(size_t run, const std::string& where) const {
  if (model_->planted) {
    model_->planted("prompt " + std::to_string(prompt(run)) + ", position " + std::to_string(runs_[run].start) +
                    (where.empty() ? "" : ", ") + where);
  }
}

float* Passage::margins(size_t run) const {
  const bool has = batch_.size >= offsetof(assay_forward, routing_margins) + sizeof(batch_.routing_margins);
  return has && batch_.routing_margins != nullptr ? batch_.routing_margins[run] : nullptr;
}

Status Passage::send() {
  std::vector<float*> all;
  for (size_t i = 0; i < runs_.size(); ++i) all.push_back(margins(i));
  return pass(model_->model, runs_, std::move(all));
}

Status Passage::send_some(const std::vector<size_t>& which, bool wrong_model) {
  if (which.empty()) return {};
  std::vector<assay_run> some;
  std::vector<float*> their_margins;
  for (const size_t i : which) {
    some.push_back(runs_[i]);
    their_margins.push_back(margins(i));
  }
  return pass(wrong_model ? model_->wrong_model : model_->model, some, std::move(their_margins));
}

Status Passage::send_one(const assay_run& run, float* its_margins) { return pass(model_->model, {run}, {its_margins}); }

Status Passage::pass(void* model, const std::vector<assay_run>& runs, std::vector<float*> margins) {
  auto batch = sdk::sized<assay_forward>();
  batch.flags = batch_.flags | ASSAY_FORWARD_WAIT;
  batch.runs = runs.data();
  batch.run_count = runs.size();
  if (std::any_of(margins.begin(), margins.end(), [](const float* one) { return one != nullptr; })) {
    batch.routing_margins = margins.data();
  }
  return sdk::call(model_->backend->forward, model, cache_, &batch, ticket_);
}

void Passage::remember() {
  const auto one = [](const assay_run& run) { return run.count == 1 && run.start > 0; };
  if (batch_.run_count >= 2 && std::all_of(batch_.runs, batch_.runs + batch_.run_count, one)) ++model_->decode_forwards;
  for (size_t i = 0; i < batch_.run_count; ++i) {  // as they came, not as they were sent
    const assay_run& run = batch_.runs[i];
    SeenSequence& row = model_->rows[run.blocks[0]];
    if (run.start == 0) {
      row = {};
    } else {
      ++row.steps;
    }
    if (run.ids != nullptr) row.ids.insert(row.ids.end(), run.ids, run.ids + run.count);
    if (run.start == 0) row.first_ids = row.ids;
    if (run.output.sampled != nullptr) ++row.samples;
  }
}

Status send_slowly(Passage* passage) {
  const FaultyModel& model = passage->model();
  const bool first = passage->first(0);
  const bool struck = model.fault == Fault::kThroughputCollapse || (model.fault == Fault::kSlowTokens && !first) ||
                      (model.fault == Fault::kSlowFirstToken && first);
  if (struck) {
    const size_t delay = (model.fault == Fault::kSlowFirstToken ? 400 : 10) + model.places.amount(16);  // milliseconds
    passage->planted(0, std::to_string(delay) + " ms");
    std::this_thread::sleep_for(std::chrono::milliseconds(delay));
  }
  return passage->send();
}

assay_backend_table faulty_backend(const assay_backend_table& real) {
  assay_backend_table table{};
  std::memcpy(&table, &real, std::min<size_t>(real.size, sizeof(table)));  // one of an older ABI is shorter
  table.size = sizeof(table);
  table.device_facts = nullptr;  // handles are this engine's own
  table.profile = nullptr;
  table.model_info = [](void* handle, assay_model_info* info, assay_error* error) -> int32_t {
    return of(handle).backend->model_info(of(handle).model, info, error);
  };
  table.make_cache = [](void* handle, const assay_cache_spec* spec, void** cache, assay_error* error) -> int32_t {
    of(handle).around.block_size = spec->block_size;
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
