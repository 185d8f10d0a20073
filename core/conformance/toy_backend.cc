#include "core/conformance/toy_backend.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>

#include "assay/sdk.hpp"

namespace assay::engines {
namespace {

constexpr int32_t kUnwritten = -7;
constexpr int kExperts = 8;

struct ToyCache {
  ToyModel* model = nullptr;
  uint32_t block_size = 0;
  std::vector<int32_t> slots;  // (block_count, block_size) token ids: the "keys and values"
};

uint64_t mix(uint64_t state, uint64_t value) {  // splitmix64 of the sum
  uint64_t z = state + value + 0x9E3779B97F4A7C15U;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9U;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBU;
  return z ^ (z >> 31);
}

uint64_t hash_of(std::span<const int32_t> sequence) {
  uint64_t state = 1;
  for (int32_t token : sequence) state = mix(state, static_cast<uint64_t>(token) + 17);
  return state;
}

double unit(uint64_t bits) { return static_cast<double>(bits >> 11) * 0x1p-53; }  // [0, 1)

double log_sum_exp(const std::vector<double>& logits) {
  const double most = *std::max_element(logits.begin(), logits.end());
  double sum = 0;
  for (double logit : logits) sum += std::exp(logit - most);
  return most + std::log(sum);
}

int32_t first_largest(const std::vector<double>& logits) {
  return static_cast<int32_t>(std::max_element(logits.begin(), logits.end()) - logits.begin());
}

int32_t draw(const std::vector<double>& logits, const assay_sampling& how, size_t position) {
  if (how.top_k == 1) return first_largest(logits);
  std::vector<double> scaled(logits.size());
  std::transform(logits.begin(), logits.end(), scaled.begin(), [&](double x) { return x / how.temperature; });
  const double whole = log_sum_exp(scaled);
  double left = unit(mix(mix(how.seed, how.prompt_index), position));
  for (size_t id = 0; id < scaled.size(); ++id) {
    left -= std::exp(scaled[id] - whole);
    if (left < 0) return static_cast<int32_t>(id);
  }
  return static_cast<int32_t>(scaled.size()) - 1;
}

// Blocks of the runs of one forward. A block that is written belongs to its run alone; read ones may be shared.
struct BlocksInUse {
  std::set<int32_t> read;
  std::set<int32_t> written;
};

Status check(const ToyCache& cache, const assay_run& run, BlocksInUse* in_use) {
  const uint64_t room = static_cast<uint64_t>(run.block_count) * cache.block_size;
  if (run.count == 0 || run.output_rows > run.count) return invalid("toy: count 0 or more output rows than tokens");
  if (uint64_t{run.start} + run.count > room) return invalid("toy: block table does not cover start + count");
  if (cache.model->max_positions > 0 && run.start + run.count > static_cast<uint32_t>(cache.model->max_positions)) {
    return invalid("toy: beyond max_positions");
  }
  for (uint32_t i = 0; i < run.block_count; ++i) {
    if (run.blocks[i] < 0 || static_cast<size_t>(run.blocks[i] + 1) * cache.block_size > cache.slots.size()) {
      return invalid("toy: block outside of the pool");
    }
    const int32_t block = run.blocks[i];
    const bool writes = (i + 1) * cache.block_size > run.start;
    if (in_use->written.count(block) + (writes ? in_use->read.count(block) : 0) > 0) {
      return invalid("toy: a block that one sequence writes is used by another one");
    }
    (writes ? in_use->written : in_use->read).insert(block);
  }
  for (uint32_t i = 0; i < run.count; ++i) {
    if (run.ids[i] < 0 || run.ids[i] >= cache.model->vocab_size) return invalid("toy: id outside of the vocabulary");
  }
  if (run.output.sampled != nullptr && run.output_rows == 0) return invalid("toy: a sample needs an output row");
  if (run.output.target_logprobs != nullptr && run.targets == nullptr) return invalid("toy: no targets");
  return {};
}

void put(const ToyModel& model, const assay_run& run, uint32_t row, std::span<const int32_t> sequence) {
  const std::vector<double> logits = toy_logits(model, sequence);
  const double whole = log_sum_exp(logits);
  const auto logprob = [&](int32_t id) { return static_cast<float>(logits[static_cast<size_t>(id)] - whole); };
  const assay_run_output& out = run.output;
  if (out.target_logprobs != nullptr && run.targets[row] >= 0) out.target_logprobs[row] = logprob(run.targets[row]);
  for (size_t id = 0; out.logits != nullptr && id < logits.size(); ++id) {
    out.logits[row * logits.size() + id] = static_cast<float>(logits[id]);
  }
  if (out.top_ids != nullptr) {
    std::vector<int32_t> order(logits.size());
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](int32_t a, int32_t b) {
      return logits[static_cast<size_t>(a)] > logits[static_cast<size_t>(b)];
    });
    for (int32_t n = 0; n < run.top_n; ++n) {
      out.top_ids[row * static_cast<uint32_t>(run.top_n) + static_cast<uint32_t>(n)] = order[static_cast<size_t>(n)];
      out.top_logprobs[row * static_cast<uint32_t>(run.top_n) + static_cast<uint32_t>(n)] =
          logprob(order[static_cast<size_t>(n)]);
    }
  }
  if (out.sampled != nullptr && row + 1 == run.output_rows) {
    *out.sampled = draw(logits, run.sampling, sequence.size());
    if (out.sampled_logprob != nullptr) *out.sampled_logprob = logprob(*out.sampled);
  }
}

// margins: (count, moe_layers) or null.
void run_one(ToyCache* cache, const assay_run& run, float* margins) {
  const ToyModel& model = *cache->model;
  const auto slot = [&](uint32_t position) -> int32_t& {
    const auto block = static_cast<size_t>(run.blocks[position / cache->block_size]);
    return cache->slots[block * cache->block_size + position % cache->block_size];
  };
  for (uint32_t i = 0; i < run.count; ++i) slot(run.start + i) = run.ids[i];
  std::vector<int32_t> sequence;
  for (uint32_t position = 0; position < run.start + run.count; ++position) {
    sequence.push_back(slot(position));
    if (position < run.start) continue;
    const uint32_t i = position - run.start;
    if (run.output.routing != nullptr) {
      const std::vector<uint16_t> chosen = toy_routing(model, sequence);
      std::copy(chosen.begin(), chosen.end(), run.output.routing + i * chosen.size());
    }
    if (margins != nullptr) {
      const std::vector<float> row = toy_margins(model, sequence);
      std::copy(row.begin(), row.end(), margins + i * row.size());
    }
    if (i + run.output_rows >= run.count) put(model, run, i + run.output_rows - run.count, sequence);
  }
}

Status forward(ToyModel* model, ToyCache* cache, const assay_forward& batch) {
  const size_t index = model->forwards.size();
  ToyForward& seen = model->forwards.emplace_back();
  model->now_ns += model->forward_ns * (index + 1);
  BlocksInUse blocks_in_use;
  for (const assay_run& run : std::span(batch.runs, batch.run_count)) {
    seen.starts.push_back(run.start);
    seen.counts.push_back(run.count);
    seen.output_rows.push_back(run.output_rows);
    if (Status status = check(*cache, run, &blocks_in_use); !status.ok()) return status;
  }
  if (index == model->fail_at) return model->failure;
  const bool margins = model->writes_margins && ASSAY_KNOWS(&batch, routing_margins) && batch.routing_margins;
  for (size_t i = 0; i < batch.run_count; ++i) {
    run_one(cache, batch.runs[i], margins ? batch.routing_margins[i] : nullptr);
  }
  return {};
}

const assay_backend_table kTable = {
    .size = sizeof(assay_backend_table),
    .reserved = 0,
    .describe = [](assay_backend_info* info, assay_error*) -> int32_t {
      info->usable = 1;
      info->device = sdk::view(std::string_view("toy"));
      return ASSAY_OK;
    },
    .open = [](const assay_model_source*, void**, assay_error* error) -> int32_t {
      return sdk::report(unsupported("toy: the test makes the model"), error);
    },
    .model_info = [](void* handle, assay_model_info* info, assay_error*) -> int32_t {
      const auto* model = static_cast<const ToyModel*>(handle);
      info->vocab_size = model->vocab_size;
      info->moe_layers = model->moe_layers;
      info->moe_topk = model->moe_topk;
      info->max_positions = model->max_positions;
      info->logits_mantissa = 24;
      info->device = sdk::view(std::string_view("toy"));
      info->determinism = ASSAY_CAP_L1 | ASSAY_CAP_L2 | ASSAY_CAP_L3;
      return ASSAY_OK;
    },
    .make_cache = [](void* handle, const assay_cache_spec* spec, void** cache, assay_error* error) -> int32_t {
      auto* model = static_cast<ToyModel*>(handle);
      if (spec->block_count > model->memory_blocks) {
        return sdk::report(exhausted("toy: no memory for " + std::to_string(spec->block_count) + " blocks"), error);
      }
      ++model->caches;
      *cache =
          new ToyCache{model, spec->block_size,
                       std::vector<int32_t>(static_cast<size_t>(spec->block_size) * spec->block_count, kUnwritten)};
      return ASSAY_OK;
    },
    .forward = [](void* model, void* cache, const assay_forward* batch, uint64_t* ticket,
                  assay_error* error) -> int32_t {
      *ticket = 0;
      return sdk::guarded(
          error, [&] { return forward(static_cast<ToyModel*>(model), static_cast<ToyCache*>(cache), *batch); });
    },
    .wait = [](void*, uint64_t, assay_error*) -> int32_t { return ASSAY_OK; },
    .release =
        [](void* handle) {
          auto* cache = static_cast<ToyCache*>(handle);
          --cache->model->caches;
          delete cache;
        },
    .close = [](void*) {},
    .device_facts = nullptr,
    .profile = nullptr,
};

}  // namespace

const assay_backend_table* toy_backend() { return &kTable; }

std::vector<double> toy_logits(const ToyModel& model, std::span<const int32_t> sequence) {
  const uint64_t state = hash_of(sequence);
  std::vector<double> logits(static_cast<size_t>(model.vocab_size));
  for (size_t id = 0; id < logits.size(); ++id) logits[id] = 4 * unit(mix(state, id));
  const int32_t preferred = model.prefers ? model.prefers(sequence) : -1;
  if (preferred >= 0) logits[static_cast<size_t>(preferred)] = 12;
  return logits;
}

double toy_logprob(const ToyModel& model, std::span<const int32_t> sequence, int32_t token) {
  const std::vector<double> logits = toy_logits(model, sequence);
  return logits[static_cast<size_t>(token)] - log_sum_exp(logits);
}

int32_t toy_argmax(const ToyModel& model, std::span<const int32_t> sequence) {
  return first_largest(toy_logits(model, sequence));
}

std::vector<float> toy_margins(const ToyModel& model, std::span<const int32_t> sequence) {
  std::vector<float> margins;
  margins.reserve(static_cast<size_t>(model.moe_layers));
  for (int32_t layer = 0; layer < model.moe_layers; ++layer) {
    margins.push_back(static_cast<float>(unit(mix(hash_of(sequence), static_cast<uint64_t>(layer) + 99))));
  }
  return margins;
}

std::vector<uint16_t> toy_routing(const ToyModel& model, std::span<const int32_t> sequence) {
  std::vector<uint16_t> chosen;
  for (int32_t layer = 0; layer < model.moe_layers; ++layer) {
    const uint64_t first = mix(hash_of(sequence), static_cast<uint64_t>(layer)) % kExperts;
    std::vector<uint16_t> experts;
    experts.reserve(static_cast<size_t>(model.moe_topk));
    for (int32_t k = 0; k < model.moe_topk; ++k) {
      experts.push_back(static_cast<uint16_t>((first + static_cast<uint64_t>(k)) % kExperts));
    }
    std::sort(experts.begin(), experts.end());
    chosen.insert(chosen.end(), experts.begin(), experts.end());
  }
  return chosen;
}

}  // namespace assay::engines
