#include "plugins/engines/static_legacy/batch.h"

#include <algorithm>
#include <string>
#include <utility>

namespace assay::engines {
namespace {

size_t longest(const std::vector<Request>& requests) {
  size_t tokens = 0;
  for (const Request& request : requests) tokens = std::max(tokens, request.prompt_ids.size());
  return tokens;
}

// The first forward would give `request` its first token, and logits are wanted of that row only.
bool wants_its_last_row_alone(const Request& request) {
  return request.want_logits && (request.want_logprobs || request.top_n > 0);
}

}  // namespace

Status Batch::fits(const std::vector<Request>& requests, const assay_model_info& info, int32_t max_sequence_length) {
  const size_t prompt = longest(requests);
  const size_t total = prompt + static_cast<size_t>(requests.front().max_new_tokens);
  const std::string sum = "longest prompt of the batch " + std::to_string(prompt) + " + " +
                          std::to_string(requests.front().max_new_tokens) + " new tokens = " + std::to_string(total);
  if (total > static_cast<size_t>(max_sequence_length)) {
    return {StatusCode::kExhausted, sum + " is over the limit of " + std::to_string(max_sequence_length) +
                                        " tokens; raise --inference-max-seq-length"};
  }
  if (info.max_positions > 0 && total > static_cast<size_t>(info.max_positions) + 1) {
    return {StatusCode::kExhausted, sum + " needs " + std::to_string(total - 1) + " positions, the model has " +
                                        std::to_string(info.max_positions) + "; generate fewer tokens"};
  }
  return {};
}

Batch::Batch(std::vector<Request> requests, const Device& device, std::optional<int32_t> eod) {
  SequenceSetting setting;
  setting.new_tokens = requests.front().max_new_tokens;
  setting.sampling = requests.front().sampling;
  setting.eod = eod;
  setting.moe_layers = static_cast<size_t>(device.info().moe_layers);
  setting.moe_topk = static_cast<size_t>(device.info().moe_topk);
  setting.vocab_size = static_cast<size_t>(device.info().vocab_size);
  end_ = longest(requests);
  if (setting.new_tokens > 0) {  // nothing follows otherwise, so that all prompts may go at once
    for (const Request& request : requests) end_ = std::min(end_, request.prompt_ids.size());
    if (end_ > 1 && std::any_of(requests.begin(), requests.end(), wants_its_last_row_alone)) --end_;
  }
  rows_.reserve(requests.size());
  for (size_t i = 0; i < requests.size(); ++i) {
    setting.blocks = device.blocks(i);
    rows_.emplace_back(std::move(requests[i]), setting);
  }
}

Status Batch::step(Device* device, const Host& host, uint64_t step, std::vector<EngineEvent>* events) {
  std::vector<assay_run> runs;
  std::vector<Sequence*> running;
  std::vector<float*> margins;
  for (Sequence& row : rows_) {
    if (row.done()) continue;
    runs.push_back(row.next(start_, end_));
    running.push_back(&row);
    if (row.margins() != nullptr) {
      margins.resize(runs.size());
      margins.back() = row.margins();
    }
  }
  if (runs.empty()) return {};
  const uint64_t before = host.now_ns();
  if (!margins.empty()) margins.resize(runs.size());
  if (Status status = device->forward(runs, margins); !status.ok()) return status;
  const double seconds = static_cast<double>(host.now_ns() - before) * 1e-9;
  for (size_t i = 0; i < runs.size(); ++i) {
    running[i]->counters().saw_batch(runs.size());
    running[i]->counters().steps = step;
    const std::optional<int32_t> token = running[i]->absorb(seconds);
    if (token) events->push_back(token_event(running[i]->request().id, *token));
  }
  start_ = std::exchange(end_, end_ + 1);
  return {};
}

bool Batch::done() const {
  return std::all_of(rows_.begin(), rows_.end(), [](const Sequence& row) { return row.done(); });
}

bool Batch::cancel(uint64_t id) {
  return std::erase_if(rows_, [id](const Sequence& row) { return row.request().id == id; }) > 0;
}

}  // namespace assay::engines
