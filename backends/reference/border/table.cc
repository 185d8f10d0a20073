#include "backends/reference/border/table.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "assay/sdk.hpp"
#include "backends/reference/border/measurable.h"

namespace assay::backend {
namespace {

struct OpenedModel {
  std::unique_ptr<Model> model;
  uint64_t tickets = 0;                         // handed out; all are done
  std::vector<std::optional<int32_t>> sampled;  // by run index: what the previous forward drew
  std::vector<KernelTime> times;                // of the last profile, and their views
  std::vector<assay_kernel_time> time_views;
};

Result<Measurable*> measurable(const OpenedModel& opened) {
  auto* found = dynamic_cast<Measurable*>(opened.model.get());
  if (found == nullptr) return unsupported(opened.model->device() + ": this backend measures nothing of its device");
  return found;
}

// Copies of the runs with ids filled in where the previous output is to be used.
Status resolve_previous(const OpenedModel& opened, std::vector<assay_run>& runs, std::vector<int32_t>& ids) {
  ids.resize(runs.size());
  for (size_t i = 0; i < runs.size(); ++i) {
    if (runs[i].ids != nullptr) continue;
    if (i >= opened.sampled.size() || !opened.sampled[i].has_value()) {
      return invalid("run " + std::to_string(i) +
                     ": the previous output is asked for, but the previous forward drew "
                     "no token for this run; pass ids");
    }
    ids[i] = *opened.sampled[i];
    runs[i].ids = &ids[i];
  }
  return {};
}

// Checks the batch and gives it, complete, to `run`.
template <class Run>
Status run_batch(OpenedModel& opened, Cache& cache, const assay_forward& request, const Run& run) {
  std::vector<assay_run> runs(request.runs, request.runs + request.run_count);
  if (Status status = check_runs(opened.model->config(), cache, runs); !status.ok()) return status;
  std::vector<int32_t> ids;
  if (Status status = resolve_previous(opened, runs, ids); !status.ok()) return status;
  if (Status status = run(runs); !status.ok()) return status;
  opened.sampled.assign(runs.size(), std::nullopt);
  for (size_t i = 0; i < runs.size(); ++i) {
    if (runs[i].output.sampled != nullptr) opened.sampled[i] = *runs[i].output.sampled;
  }
  return {};
}

}  // namespace

int32_t open_model(OpenFunction open, const assay_host* host, const assay_model_source* source, void** model,
                   assay_error* error) {
  return sdk::guarded(error, [&]() -> Status {
    Result<model::ModelConfig> config = model::parse_model_config(std::string(sdk::text(source->config_json)));
    if (!config) return config.status().with("model config");
    if (Status status = model::validate(*config); !status.ok()) return status.with("model config");
    Result<std::unique_ptr<Model>> opened = open(*config, sdk::text(source->checkpoint), sdk::text(source->options));
    if (!opened) return opened.status();
    for (const std::string& note : (*opened)->notes()) {
      if (host != nullptr) host->log(host->context, ASSAY_LOG_WARN, sdk::view(note));
    }
    *model = new OpenedModel{std::move(*opened), 0, {}, {}, {}};
    return {};
  });
}

int32_t model_info(void* model, assay_model_info* info, assay_error* error) {
  return sdk::guarded(error, [&]() -> Status {
    const Model& opened = *static_cast<OpenedModel*>(model)->model;
    const model::ModelConfig& config = opened.config();
    assay_model_info full = sdk::sized<assay_model_info>();
    full.vocab_size = config.vocab_size;
    for (const bool moe : config.moe_layers) full.moe_layers += moe ? 1 : 0;
    full.moe_topk = full.moe_layers > 0 ? config.moe.topk : 0;
    full.max_positions = config.positions == model::Positions::kLearnedAbsolute ? config.max_position_embeddings : 0;
    full.logits_mantissa = config.arithmetic == model::Arithmetic::kBf16 ? 8 : 24;
    full.weight_bytes = opened.weight_bytes();
    full.device = sdk::view(opened.device());
    full.determinism = opened.determinism();
    constexpr size_t kFirstAbi = offsetof(assay_model_info, determinism);
    if (info->size < kFirstAbi) {
      return invalid("assay_model_info: size " + std::to_string(info->size) + ", expected " +
                     std::to_string(kFirstAbi) + " or more; set it to sizeof");
    }
    full.size = std::min(info->size, full.size);
    std::memcpy(info, &full, full.size);
    return {};
  });
}

int32_t make_cache(void* model, const assay_cache_spec* spec, void** cache, assay_error* error) {
  return sdk::guarded(error, [&]() -> Status {
    if (spec->block_size == 0 || spec->block_count == 0) {
      return invalid("cache of " + std::to_string(spec->block_count) + " blocks of " +
                     std::to_string(spec->block_size) + " tokens: both must be at least 1");
    }
    Result<std::unique_ptr<Cache>> made = static_cast<OpenedModel*>(model)->model->make_cache(*spec);
    if (!made) return made.status();
    (*made)->block_size = spec->block_size;
    (*made)->block_count = spec->block_count;
    *cache = std::move(*made).release();
    return {};
  });
}

int32_t forward(void* model, void* cache, const assay_forward* request, uint64_t* ticket, assay_error* error) {
  return sdk::guarded(error, [&]() -> Status {
    auto& opened = *static_cast<OpenedModel*>(model);
    auto& pool = *static_cast<Cache*>(cache);
    float* const* margins = ASSAY_KNOWS(request, routing_margins) ? request->routing_margins : nullptr;
    Status status = run_batch(opened, pool, *request, [&](const std::vector<assay_run>& runs) {
      return opened.model->forward(pool, runs, margins);
    });
    if (status.ok() && ticket != nullptr) *ticket = ++opened.tickets;
    return status;
  });
}

int32_t wait(void* model, uint64_t ticket, assay_error* error) {
  return sdk::guarded(error, [&]() -> Status {
    const uint64_t handed_out = static_cast<OpenedModel*>(model)->tickets;
    if (ticket == 0 || ticket > handed_out) {
      return invalid("ticket " + std::to_string(ticket) + " was never handed out; the last one is " +
                     std::to_string(handed_out));
    }
    return {};
  });
}

int32_t device_facts(void* model, assay_device_facts* facts, assay_error* error) {
  return sdk::guarded(error, [&]() -> Status {
    const Result<Measurable*> measured = measurable(*static_cast<OpenedModel*>(model));
    if (!measured) return measured.status();
    const Result<DeviceFacts> found = (*measured)->device_facts();
    if (!found) return found.status();
    auto full = sdk::sized<assay_device_facts>();
    full.read_bandwidth = found->read_bandwidth;
    full.memory_used = found->memory_used;
    full.memory_total = found->memory_total;
    full.size = std::min(facts->size, full.size);
    std::memcpy(facts, &full, full.size);
    return {};
  });
}

int32_t profile(void* model, void* cache, const assay_forward* request, const assay_kernel_time** kernels,
                size_t* count, assay_error* error) {
  return sdk::guarded(error, [&]() -> Status {
    auto& opened = *static_cast<OpenedModel*>(model);
    auto& pool = *static_cast<Cache*>(cache);
    const Result<Measurable*> measured = measurable(opened);
    if (!measured) return measured.status();
    Status status = run_batch(opened, pool, *request, [&](const std::vector<assay_run>& runs) -> Status {
      Result<std::vector<KernelTime>> times = (*measured)->profile(pool, runs);
      if (!times) return times.status();
      opened.times = *std::move(times);
      return {};
    });
    if (!status.ok()) return status;
    opened.time_views.clear();
    for (const KernelTime& time : opened.times) {
      opened.time_views.push_back({sdk::view(time.name), time.launches, time.bytes, time.flops, time.seconds});
    }
    *kernels = opened.time_views.data();
    *count = opened.time_views.size();
    return {};
  });
}

void release(void* cache) { delete static_cast<Cache*>(cache); }

void close(void* model) { delete static_cast<OpenedModel*>(model); }

}  // namespace assay::backend
