#include "backends/cuda/outputs.h"

#include <algorithm>

#include "backends/cuda/kernels/elementwise.h"
#include "backends/reference/arithmetic/formats.h"
#include "backends/reference/arithmetic/precise.h"
#include "backends/reference/arithmetic/vocabulary.h"

namespace assay::cuda {
namespace {

constexpr size_t kLogitBytes = size_t{64} << 20;  // held at a time

bool draws(const assay_run& run, size_t row) { return run.output.sampled != nullptr && row + 1 == run.output_rows; }

// Whether the host has to see the whole row.
bool wants_logits(const assay_run& run, size_t row) {
  const bool top_n = run.top_n > 0 && (run.output.top_ids != nullptr || run.output.top_logprobs != nullptr);
  return top_n || run.output.logits != nullptr || (draws(run, row) && run.sampling.top_k != 1);
}

void copy_to_host(void* to, const void* from, size_t bytes, const Stream& stream) {
  check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToHost, stream.get()), "cudaMemcpyAsync");
}

}  // namespace

size_t OutputStage::rows_at_once() const {
  return std::max<size_t>(1, kLogitBytes / (sizeof(float) * static_cast<size_t>(config_.vocab_size)));
}

void OutputStage::write(const Operators& operators, Workspace& w, const Stream& stream) {
  copy_routing(w, stream);
  gather(w, stream);
  size_t done = 0;  // rows that are written
  const size_t most = rows_at_once();
  for (size_t first = 0; first < rows_.size(); first += most) {
    const size_t count = std::min(most, rows_.size() - first);
    look(compute({&rows_[first], count}, first, operators, w, stream), first, count, w, stream);
    if (host_rows_ == 0) continue;
    finish(done, first + count - done, w, stream);
    done = first + count;
    host_rows_ = 0;
  }
  finish(done, rows_.size() - done, w, stream);
  write_routing(w, stream);
}

void OutputStage::write(const LogitRows& logits, Workspace& w, const Stream& stream) {
  copy_routing(w, stream);
  gather(w, stream);
  // Tokens without an output row are passed over: their neighbours' rows are looked at one after the other.
  for (size_t first = 0; first < rows_.size();) {
    size_t end = first + 1;
    while (end < rows_.size() && rows_[end].token == rows_[end - 1].token + 1) ++end;
    const size_t bytes = static_cast<size_t>(config_.vocab_size) * (logits.bf16 ? 2 : 4);
    const auto* from = static_cast<const std::byte*>(logits.data) + static_cast<size_t>(rows_[first].token) * bytes;
    look({from, logits.bf16}, first, end - first, w, stream);
    first = end;
  }
  finish(0, rows_.size(), w, stream);
  write_routing(w, stream);
}

// The slice's output rows; their tokens and targets to the device.
void OutputStage::gather(const Workspace& w, const Stream& stream) {
  rows_.clear();
  for (size_t t = 0; t < w.tokens.size(); ++t) {
    const Token& token = w.tokens[t];
    const uint32_t first = token.run->count - token.run->output_rows;
    if (token.index >= first) rows_.push_back({static_cast<int32_t>(t), token.index - first});
  }
  host_rows_ = 0;
  host_place_.assign(rows_.size(), -1);
  if (rows_.empty()) return;
  ints_.clear();
  for (const Row& row : rows_) ints_.push(row.token);
  for (const Row& row : rows_) {
    const assay_run& run = *w.tokens[static_cast<size_t>(row.token)].run;
    ints_.push(run.targets != nullptr ? run.targets[row.row] : -1);
  }
  ints_.upload(stream);
  facts_.reserve(std::max(rows_.size(), w.slice));
  host_facts_.reserve(std::max(rows_.size(), w.slice));
  segments_.reserve(segment_floats(static_cast<int>(std::min(rows_at_once(), w.slice)), config_.vocab_size));
}

// Their logits, in logits_.
LogitRows OutputStage::compute(std::span<const Row> rows, size_t first, const Operators& operators, Workspace& w,
                               const Stream& stream) {
  const int hidden = config_.hidden_size;
  const bool bf16 = config_.arithmetic == model::Arithmetic::kBf16;
  if (normed_rows_ < rows.size()) {
    normed_ = InputRows(rows.size(), hidden, bf16);
    normed_rows_ = rows.size();
  }
  logits_.reserve(rows.size() * static_cast<size_t>(config_.vocab_size));
  NormArgs norm{.x = w.x.data(), .gather = ints_.at(first), .gamma = weights_.final_norm.gamma};
  norm.beta = weights_.final_norm.beta;
  norm.y = normed_.of(hidden);
  norm.tokens = static_cast<int>(rows.size());
  norm.width = hidden;
  norm.epsilon = static_cast<float>(config_.norm_epsilon);
  norm.centred = config_.norm == model::Norm::kLayerNorm;
  normalise(norm, stream.get());
  LinearArgs output{.weight = weights_.output, .x = norm.y, .y = logits_.data()};
  output.y_stride = config_.vocab_size;
  output.tokens = norm.tokens;
  output.rounded = bf16;
  operators.linear(output, stream.get());
  return {logits_.data(), false};
}

// Facts of the rows [first, first + count) of the slice, whose logits these are; and the logits that the host has to
// see are on their way to it.
void OutputStage::look(const LogitRows& logits, size_t first, size_t count, const Workspace& w, const Stream& stream) {
  ScanArgs scan{.logits = logits.data, .bf16 = logits.bf16, .targets = ints_.at(rows_.size() + first)};
  scan.facts = facts_.data() + first;
  scan.segments = segments_.data();
  scan.rows = static_cast<int>(count);
  scan.vocab = config_.vocab_size;
  scan_rows(scan, stream.get());
  host_bf16_ = logits.bf16;
  const size_t bytes = static_cast<size_t>(config_.vocab_size) * (logits.bf16 ? 2 : 4);
  for (size_t i = first; i < first + count; ++i) {
    if (!wants_logits(*w.tokens[static_cast<size_t>(rows_[i].token)].run, rows_[i].row)) continue;
    host_logits_.reserve(std::min(rows_at_once(), w.slice) * bytes);  // its first row comes before any copy
    host_place_[i] = static_cast<int32_t>(host_rows_);
    copy_to_host(host_logits_.data() + host_rows_++ * bytes,
                 static_cast<const std::byte*>(logits.data) + (i - first) * bytes, bytes, stream);
  }
}

// Waits, then writes the rows [first, first + count) of the slice.
void OutputStage::finish(size_t first, size_t count, const Workspace& w, const Stream& stream) {
  if (count == 0) return;
  copy_to_host(host_facts_.data() + first, facts_.data() + first, count * sizeof(RowFacts), stream);
  stream.wait();
  for (size_t i = first; i < first + count; ++i) write_row(i, *w.tokens[static_cast<size_t>(rows_[i].token)].run);
}

void OutputStage::write_row(size_t index, const assay_run& run) {
  const RowFacts& facts = host_facts_.data()[index];
  const size_t row = rows_[index].row;
  const arithmetic::RowSummary summary{facts.top, arithmetic::log_of_sum(facts.total), facts.argmax};
  if (host_place_[index] >= 0) {
    const std::span<const float> logits(host_row(index), static_cast<size_t>(config_.vocab_size));
    arithmetic::write_row(logits, summary, run, row);
    if (draws(run, row)) arithmetic::write_sample(logits, summary, run);
    return;
  }
  arithmetic::write_facts(summary, {facts.target, facts.rank}, run, row);
  if (!draws(run, row)) return;
  *run.output.sampled = facts.argmax;
  if (run.output.sampled_logprob != nullptr) *run.output.sampled_logprob = summary.logprob(facts.top);
}

// (vocab) logits as fp32; valid until the next call.
const float* OutputStage::host_row(size_t index) {
  const auto vocab = static_cast<size_t>(config_.vocab_size);
  const std::byte* from = host_logits_.data() + static_cast<size_t>(host_place_[index]) * vocab * (host_bf16_ ? 2 : 4);
  if (!host_bf16_) return reinterpret_cast<const float*>(from);
  widened_.resize(vocab);
  const auto* stored = reinterpret_cast<const uint16_t*>(from);
  std::transform(stored, stored + vocab, widened_.begin(), arithmetic::from_bf16);
  return widened_.data();
}

void OutputStage::copy_routing(const Workspace& w, const Stream& stream) {
  routing_ = w.moe_layers > 0 && std::ranges::any_of(w.tokens, [](const Token& token) {
               return token.margins != nullptr || token.run->output.routing != nullptr;
             });
  if (!routing_) return;
  const auto topk = static_cast<size_t>(config_.moe.topk);
  host_experts_.reserve(w.experts.size());
  host_margins_.reserve(w.margins.size());
  const auto copy = [&](void* to, const void* from, size_t each) {  // the slice's tokens of every layer
    const size_t pitch = w.slice * each;
    check(cudaMemcpy2DAsync(to, pitch, from, pitch, w.tokens.size() * each, w.moe_layers, cudaMemcpyDeviceToHost,
                            stream.get()),
          "cudaMemcpy2DAsync");
  };
  copy(host_experts_.data(), w.experts.data(), topk * sizeof(uint16_t));
  copy(host_margins_.data(), w.margins.data(), sizeof(float));
}

// After finish() of all rows.
void OutputStage::write_routing(const Workspace& w, const Stream& stream) {
  if (!routing_) return;
  if (rows_.empty()) stream.wait();
  const auto topk = static_cast<size_t>(config_.moe.topk);
  for (size_t t = 0; t < w.tokens.size(); ++t) {
    const Token& token = w.tokens[t];
    for (size_t m = 0; m < w.moe_layers; ++m) {
      if (token.margins != nullptr) token.margins[m] = host_margins_.data()[m * w.slice + t];
      if (token.run->output.routing == nullptr) continue;
      std::copy_n(host_experts_.data() + (m * w.slice + t) * topk, topk,
                  token.run->output.routing + (token.index * w.moe_layers + m) * topk);
    }
  }
}

}  // namespace assay::cuda
