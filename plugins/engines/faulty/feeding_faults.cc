// Faults in what the backend is fed with: positions, blocks, ids, sampling.
#include <algorithm>
#include <utility>

#include "assay/sdk.hpp"
#include "plugins/engines/faulty/faulty_backend.h"
#include "plugins/engines/faulty/run_parts.h"

namespace assay::engines {
namespace {

Status off_by_one(Passage* passage) {
  for (size_t i = 0; i < passage->runs().size(); ++i) {
    assay_run& run = passage->runs()[i];
    if (run.count != 1 || !passage->strikes_at_step(i, true)) continue;
    passage->planted(i, "");
    --run.start;
  }
  return passage->send();
}

// The ids that began the row's sequence before this one.
std::vector<int32_t> left_behind(const Passage& passage, size_t run) { return passage.seen(run).first_ids; }

bool is_stale(const Passage& passage, size_t run) {
  const Places& places = passage.model().places;
  if (!places.seeded()) return true;
  const size_t rows = passage.model().first_rows;
  if (places.requests() <= rows) return false;  // nobody has a predecessor
  return passage.prompt(run) == rows + places.victim() % (places.requests() - rows);
}

Status stale_kv(Passage* passage) {
  struct Stale {
    size_t run;
    std::vector<int32_t> ids;
  };
  std::vector<Stale> all;
  for (size_t i = 0; i < passage->runs().size(); ++i) {
    const assay_run& run = passage->runs()[i];
    if (!passage->first(i) || run.ids == nullptr || !is_stale(*passage, i)) continue;
    std::vector<int32_t> ids = left_behind(*passage, i);
    ids.resize(std::min<size_t>(ids.size(), run.count));
    if (passage->model().places.seeded() && !ids.empty()) ids.resize(1 + passage->model().places.pick(ids.size()));
    if (!ids.empty()) all.push_back({i, std::move(ids)});
  }
  if (Status status = passage->send(); !status.ok()) return status;
  for (const Stale& stale : all) {
    const assay_run& from = passage->runs()[stale.run];
    assay_run run{};
    run.ids = stale.ids.data();
    run.count = static_cast<uint32_t>(stale.ids.size());
    run.blocks = from.blocks;
    run.block_count = from.block_count;
    passage->planted(stale.run, std::to_string(run.count) + " positions");
    if (Status status = passage->send_one(run, nullptr); !status.ok()) return status;
  }
  return {};
}

Status mixed_kv(Passage* passage) {
  std::vector<assay_run>& runs = passage->runs();
  const bool decode = std::all_of(runs.begin(), runs.end(), [](const assay_run& run) { return run.start > 0; });
  const Places& places = passage->model().places;
  const size_t forward = places.seeded() ? places.pick(kEarlySteps) : 0;
  if (runs.size() >= 2 && decode && passage->model().decode_forwards == forward) {
    const size_t a = places.victim() % runs.size();
    const size_t b = (a + 1) % runs.size();
    passage->planted(a, "with prompt " + std::to_string(passage->prompt(b)));
    std::swap(runs[a].blocks, runs[b].blocks);
    std::swap(runs[a].block_count, runs[b].block_count);
  }
  return passage->send();
}

Status lost_kv_entry(Passage* passage) {
  if (Status status = passage->send(); !status.ok()) return status;
  for (size_t i = 0; i < passage->runs().size(); ++i) {
    const assay_run& from = passage->runs()[i];
    if (!passage->first(i) || !passage->strikes(i) || from.count < 2) continue;
    const size_t position = passage->model().places.pick(from.count);
    const auto other =
        std::find_if(from.ids, from.ids + from.count, [&](int32_t id) { return id != from.ids[position]; });
    if (other == from.ids + from.count) continue;
    assay_run run{};
    run.ids = other;
    run.count = 1;
    run.start = static_cast<uint32_t>(position);
    run.blocks = from.blocks;
    run.block_count = from.block_count;
    passage->planted(i, "entry " + std::to_string(position));
    if (Status status = passage->send_one(run, nullptr); !status.ok()) return status;
  }
  return {};
}

Status off_by_one_prefill(Passage* passage) {
  const FaultyModel& model = passage->model();
  auto info = sdk::sized<assay_model_info>();
  if (Status status = sdk::call(model.backend->model_info, model.model, &info); !status.ok()) return status;
  struct Tail {
    assay_run run;
    float* margins;
  };
  std::vector<Tail> tails;
  for (size_t i = 0; i < passage->runs().size(); ++i) {
    assay_run& run = passage->runs()[i];
    if (!passage->first(i) || !passage->strikes(i) || run.count < 2 || run.ids == nullptr) continue;
    const auto border = static_cast<uint32_t>(1 + model.places.pick(run.count - 1));
    passage->planted(i, "border " + std::to_string(border));
    auto [head, tail] = split(run, border, info);
    --tail.start;
    float* margins = passage->margins(i);
    tails.push_back({tail, margins == nullptr ? nullptr : margins + static_cast<size_t>(border) * info.moe_layers});
    run = head;
  }
  if (Status status = passage->send(); !status.ok()) return status;
  for (const Tail& tail : tails) {
    if (Status status = passage->send_one(tail.run, tail.margins); !status.ok()) return status;
  }
  return {};
}

// Replaces the last id of struck runs by the one before it in its sequence.
template <class Struck>
Status repeat_id(Passage* passage, Struck struck) {
  std::vector<std::vector<int32_t>> changed(passage->runs().size());
  for (size_t i = 0; i < passage->runs().size(); ++i) {
    assay_run& run = passage->runs()[i];
    if (run.ids == nullptr || !struck(i)) continue;
    std::vector<int32_t> all;
    if (run.start > 0) all = passage->seen(i).ids;
    all.insert(all.end(), run.ids, run.ids + run.count);
    if (all.size() < 2 || all.back() == all[all.size() - 2]) continue;
    passage->planted(i, "");
    changed[i].assign(run.ids, run.ids + run.count);
    changed[i].back() = all[all.size() - 2];
    run.ids = changed[i].data();
  }
  return passage->send();
}

Status last_token_unseen(Passage* passage) {
  return repeat_id(passage, [&](size_t i) {
    const bool draws_first =
        passage->runs()[i].output.sampled != nullptr && (passage->first(i) || passage->seen(i).samples == 0);
    return draws_first && passage->strikes(i);
  });
}

Status stale_input(Passage* passage) {
  return repeat_id(passage, [&](size_t i) { return passage->strikes_at_step(i, false); });
}

// True where the struck request draws its token number `step`, or a later one.
bool draws(const Passage& passage, const assay_run& run, size_t i, bool later) {
  if (run.output.sampled == nullptr || !passage.strikes(i)) return false;
  const Places& places = passage.model().places;
  const size_t step = places.seeded() ? places.pick(kEarlySteps) : 0;
  const size_t samples = passage.first(i) ? 0 : passage.seen(i).samples;
  return samples == step || (later && samples > step);
}

Status sample(Passage* passage) {
  for (size_t i = 0; i < passage->runs().size(); ++i) {
    assay_run& run = passage->runs()[i];
    if (!draws(*passage, run, i, true)) continue;
    passage->planted(i, "");
    run.sampling.temperature = 3;
    run.sampling.top_k = 0;
    run.sampling.top_p = 0;
  }
  return passage->send();
}

Status wrong_token(Passage* passage) {
  struct Second {
    size_t run;
    std::vector<int32_t> ids;     // (rows, 2)
    std::vector<float> logprobs;  // (rows, 2) nats
    assay_run before;
  };
  std::vector<Second> struck;
  for (size_t i = 0; i < passage->runs().size(); ++i) {
    if (!draws(*passage, passage->runs()[i], i, false)) continue;
    const size_t rows = passage->runs()[i].output_rows;
    const size_t width = std::max<size_t>(2, static_cast<size_t>(passage->runs()[i].top_n));
    struck.push_back({i, std::vector<int32_t>(rows * width), std::vector<float>(rows * width), passage->runs()[i]});
  }
  for (Second& second : struck) {
    assay_run& run = passage->runs()[second.run];
    run.top_n = std::max(2, run.top_n);
    run.output.top_ids = second.ids.data();
    run.output.top_logprobs = second.logprobs.data();
  }
  if (Status status = passage->send(); !status.ok()) return status;
  for (const Second& second : struck) {
    const auto width = static_cast<size_t>(passage->runs()[second.run].top_n);
    const auto wanted = static_cast<size_t>(second.before.top_n);
    for (size_t row = 0; row < second.before.output_rows; ++row) {
      for (size_t n = 0; n < wanted; ++n) {
        if (second.before.output.top_ids != nullptr) {
          second.before.output.top_ids[row * wanted + n] = second.ids[row * width + n];
        }
        if (second.before.output.top_logprobs != nullptr) {
          second.before.output.top_logprobs[row * wanted + n] = second.logprobs[row * width + n];
        }
      }
    }
    const size_t last = (second.before.output_rows - 1) * width;
    *second.before.output.sampled = second.ids[last + 1];
    if (second.before.output.sampled_logprob != nullptr) {
      *second.before.output.sampled_logprob = second.logprobs[last + 1];
    }
    passage->planted(second.run, "token " + std::to_string(second.ids[last + 1]));
  }
  return {};
}

}  // namespace

Status send_with_feeding_fault(Passage* passage) {
  switch (passage->model().fault) {
    case Fault::kStaleKv:
      return stale_kv(passage);
    case Fault::kMixedKv:
      return mixed_kv(passage);
    case Fault::kLostKvEntry:
      return lost_kv_entry(passage);
    case Fault::kOffByOnePosition:
      return off_by_one(passage);
    case Fault::kOffByOnePrefill:
      return off_by_one_prefill(passage);
    case Fault::kLastTokenUnseen:
      return last_token_unseen(passage);
    case Fault::kStaleInput:
      return stale_input(passage);
    case Fault::kSampled:
      return sample(passage);
    case Fault::kWrongToken:
      return wrong_token(passage);
    default:
      return unsupported("engine faulty: " + std::string(to_string(passage->model().fault)) + " feeds nothing wrong");
  }
}

}  // namespace assay::engines
