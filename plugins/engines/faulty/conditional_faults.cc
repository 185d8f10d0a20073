// Faults that strike under a condition alone, and some of them by a last bit.
#include <cmath>
#include <limits>

#include "assay/sdk.hpp"
#include "plugins/engines/faulty/conditions.h"
#include "plugins/engines/faulty/faulty_backend.h"
#include "plugins/engines/faulty/run_parts.h"

namespace assay::engines {
namespace {

// The run goes on where the request was, or it begins, or begins again.
void begin(const assay_run& run, Watched* request) {
  if (request->runs > 0 && run.start == request->end) return;
  if (request->runs > 0) {
    ++request->resumes;
    request->cut_short = request->end < request->prompt_size;
  }
  request->runs = 0;
  request->chunks = 0;
  request->cached = run.start;
  request->end = run.start;
  request->drew = false;
}

// What of the run is known before it goes through: its tokens.
void learn(const assay_run& run, Watched* request) {
  if (run.ids == nullptr) return;
  for (size_t i = request->ids.size(); i < run.start + run.count && i >= run.start; ++i) {
    request->ids.push_back(run.ids[i - run.start]);
  }
}

void end(const assay_run& run, Watched* request) {
  request->end = run.start + run.count;
  ++request->runs;
  if (run.start < request->prompt_size) ++request->chunks;
  request->drew = request->drew || run.output.sampled != nullptr;
}

void lower(float* value) { *value = std::nextafterf(*value, -std::numeric_limits<float>::infinity()); }

void change_last_bit(const assay_run& run, size_t row) {
  const assay_run_output& out = run.output;
  if (out.target_logprobs != nullptr && run.targets[row] >= 0) lower(&out.target_logprobs[row]);
  if (out.sampled_logprob != nullptr && row + 1 == run.output_rows) lower(out.sampled_logprob);
  const auto width = static_cast<size_t>(run.top_n);
  for (size_t n = 0; out.top_logprobs != nullptr && n < width; ++n) lower(&out.top_logprobs[row * width + n]);
}

// Of the chosen experts of the token's first routing layer, ascending, the last one becomes a neighbour of its.
Status change_routing(Passage* passage, const Struck& struck) {
  const FaultyModel& model = passage->model();
  auto info = sdk::sized<assay_model_info>();
  if (Status status = sdk::call(model.backend->model_info, model.model, &info); !status.ok()) return status;
  if (info.moe_layers == 0 || info.moe_topk == 0) return {};
  const auto topk = static_cast<size_t>(info.moe_topk);
  uint16_t* chosen = passage->runs()[struck.run].output.routing +
                     struck.place * static_cast<size_t>(info.moe_layers) * topk;  // (moe_layers, moe_topk)
  const bool room = chosen[topk - 1] > (topk > 1 ? chosen[topk - 2] + 1 : 0);
  chosen[topk - 1] = static_cast<uint16_t>(room ? chosen[topk - 1] - 1 : chosen[topk - 1] + 1);
  return {};
}

Status overwrite(Passage* passage, const Struck& struck) {
  const assay_run& from = passage->runs()[struck.run];
  assay_run run{};
  run.ids = &struck.id;
  run.count = 1;
  run.start = static_cast<uint32_t>(struck.place);
  run.blocks = from.blocks;
  run.block_count = from.block_count;
  return passage->send_one(run, nullptr);
}

// The tokens are where they belong already: only they are seen once more, too early.
Status move_back(Passage* passage, const Struck& struck) {
  const FaultyModel& model = passage->model();
  auto info = sdk::sized<assay_model_info>();
  if (Status status = sdk::call(model.backend->model_info, model.model, &info); !status.ok()) return status;
  const assay_run& run = passage->runs()[struck.run];
  const auto border = static_cast<uint32_t>(struck.place) - run.start;
  assay_run tail = border == 0 ? run : split(run, border, info).second;
  --tail.start;
  float* margins = passage->margins(struck.run);
  if (margins != nullptr) margins += static_cast<size_t>(border) * static_cast<size_t>(info.moe_layers);
  return passage->send_one(tail, margins);
}

bool is_in_cache(const Passage& passage, const Struck& struck) {
  return struck.harm == Harm::kOtherKv && struck.place < passage.watched(struck.run).end;
}

Status harm_before(Passage* passage, const Struck& struck, std::vector<int32_t>* ids) {
  assay_run& run = passage->runs()[struck.run];
  if (struck.harm == Harm::kDraw) run.sampling.prompt_index = struck.place;
  if (struck.harm == Harm::kRepeatedToken) {
    ids->assign(run.ids, run.ids + run.count);
    ids->back() = ids->at(ids->size() - 2);
    run.ids = ids->data();
  }
  return is_in_cache(*passage, struck) ? overwrite(passage, struck) : Status();
}

Status harm_after(Passage* passage, const Struck& struck) {
  if (struck.harm == Harm::kLastBit) change_last_bit(passage->runs()[struck.run], struck.place);
  if (struck.harm == Harm::kRouting) return change_routing(passage, struck);
  if (struck.harm == Harm::kEarlierPosition) return move_back(passage, struck);
  const bool fresh = struck.harm == Harm::kOtherKv && !is_in_cache(*passage, struck);
  return fresh ? overwrite(passage, struck) : Status();
}

std::string where(const assay_run& run, const Struck& struck) {
  switch (struck.harm) {
    case Harm::kLastBit:
      return "row of position " + std::to_string(run.start + run.count - run.output_rows + struck.place);
    case Harm::kOtherKv:
      return "KV of position " + std::to_string(struck.place) + " is that of token " + std::to_string(struck.id);
    case Harm::kRepeatedToken:
      return "the token at " + std::to_string(struck.place) + " is the one before it";
    case Harm::kEarlierPosition:
      return "from position " + std::to_string(struck.place) + " on";
    case Harm::kRouting:
      return "experts of position " + std::to_string(run.start + struck.place);
    case Harm::kDraw:
      return "as prompt " + std::to_string(struck.place);
  }
  return "";
}

}  // namespace

Status send_under_condition(Passage* passage) {
  for (size_t i = 0; i < passage->runs().size(); ++i) {
    begin(passage->runs()[i], &passage->watched(i));
    learn(passage->runs()[i], &passage->watched(i));
  }
  const std::vector<Struck> all = choose_struck(passage);
  std::vector<std::vector<int32_t>> ids(all.size());  // of runs whose ids change
  for (size_t i = 0; i < all.size(); ++i) {
    passage->planted(all[i].run, where(passage->runs()[all[i].run], all[i]));
    if (Status status = harm_before(passage, all[i], &ids[i]); !status.ok()) return status;
  }
  if (Status status = passage->send(); !status.ok()) return status;
  for (const Struck& struck : all) {
    if (Status status = harm_after(passage, struck); !status.ok()) return status;
  }
  for (size_t i = 0; i < passage->runs().size(); ++i) end(passage->runs()[i], &passage->watched(i));
  ++passage->model().around.forwards;
  return {};
}

}  // namespace assay::engines
