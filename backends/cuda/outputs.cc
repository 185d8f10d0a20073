#include "backends/cuda/outputs.h"

#include <algorithm>

#include "backends/cuda/kernels/elementwise.h"
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
  gather(w);
  upload(w, stream);
  size_t done = 0;                       // rows that are written
  const auto copied = [&](size_t end) {  // the facts of rows below `end` are on their way
    w.mark("", 0);
    copy_to_host(host_facts_.data() + done, facts_.data() + done, (end - done) * sizeof(RowFacts), stream);
    finish(done, end - done, w, stream);
    done = end;
  };
  const size_t most = rows_at_once();
  for (size_t first = 0; first < rows_.size(); first += most) {
    const size_t count = std::min(most, rows_.size() - first);
    compute({&rows_[first], count}, first, operators, w, stream);
    for (size_t i = first; i < first + count; ++i) {
      copy_wanted(logits_.data() + (i - first) * static_cast<size_t>(config_.vocab_size), i, w, stream);
    }
    if (host_rows_ > 0) copied(first + count);
  }
  if (done < rows_.size()) copied(rows_.size());
  write_routing(w, stream);
}

void OutputStage::write(const DecodedRows& decoded, Workspace& w, const Stream& stream) {
  w.mark("", 0);
  copy_routing(w, stream);
  gather(w);
  if (!rows_.empty()) {
    copy_to_host(host_facts_.data(), decoded.facts, w.tokens.size() * sizeof(RowFacts), stream);
    for (size_t i = 0; i < rows_.size(); ++i) {
      const size_t offset = static_cast<size_t>(rows_[i].token) * static_cast<size_t>(config_.vocab_size);
      copy_wanted(decoded.logits + offset, i, w, stream);
    }
    stream.wait();
    RowFacts* const facts = host_facts_.data();  // of tokens; now of rows, of which there are no more
    for (size_t i = 0; i < rows_.size(); ++i) facts[i] = facts[rows_[i].token];
    finish(0, rows_.size(), w, stream);
  }
  write_routing(w, stream);
}

// The slice's output rows.
void OutputStage::gather(const Workspace& w) {
  rows_.clear();
  for (size_t t = 0; t < w.tokens.size(); ++t) {
    const Token& token = w.tokens[t];
    const uint32_t first = token.run->count - token.run->output_rows;
    if (token.index >= first) rows_.push_back({static_cast<int32_t>(t), token.index - first});
  }
  host_rows_ = 0;
  host_place_.assign(rows_.size(), -1);
  host_facts_.reserve(std::max(rows_.size(), w.slice));
}

// Their tokens and targets to the device.
void OutputStage::upload(const Workspace& w, const Stream& stream) {
  if (rows_.empty()) return;
  ints_.clear();
  for (const Row& row : rows_) ints_.push(row.token);
  for (const Row& row : rows_) {
    const assay_run& run = *w.tokens[static_cast<size_t>(row.token)].run;
    ints_.push(run.targets != nullptr ? run.targets[row.row] : -1);
  }
  ints_.upload(stream);
  facts_.reserve(w.slice);
  segments_.reserve(segment_floats(static_cast<int>(std::min(rows_at_once(), w.slice)), config_.vocab_size));
}

// Logits of the rows from `first` on to logits_, what is said about them to facts_.
void OutputStage::compute(std::span<const Row> rows, size_t first, const Operators& operators, Workspace& w,
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
  w.mark("output layer", static_cast<double>(weights_.output.bytes()) + 4.0 * norm.tokens * config_.vocab_size,
         2.0 * norm.tokens * config_.vocab_size * hidden);
  operators.linear(output, stream.get());
  ScanArgs scan{.logits = logits_.data(), .targets = ints_.at(rows_.size() + first), .facts = facts_.data() + first};
  scan.segments = segments_.data();
  scan.rows = norm.tokens;
  scan.vocab = config_.vocab_size;
  w.mark("facts of logits", 4.0 * norm.tokens * config_.vocab_size);
  scan_rows(scan, stream.get());
}

// The logits of a row that the host has to see are on their way to it.
void OutputStage::copy_wanted(const float* logits, size_t index, const Workspace& w, const Stream& stream) {
  if (!wants_logits(*w.tokens[static_cast<size_t>(rows_[index].token)].run, rows_[index].row)) return;
  const auto vocab = static_cast<size_t>(config_.vocab_size);
  host_logits_.reserve(std::min(rows_at_once(), w.slice) * vocab);  // the first row comes before any copy
  host_place_[index] = static_cast<int32_t>(host_rows_);
  copy_to_host(host_logits_.data() + host_rows_++ * vocab, logits, vocab * sizeof(float), stream);
}

// Waits for facts and logits of the rows [first, first + count) of the slice and writes them.
void OutputStage::finish(size_t first, size_t count, const Workspace& w, const Stream& stream) {
  stream.wait();
  for (size_t i = first; i < first + count; ++i) write_row(i, *w.tokens[static_cast<size_t>(rows_[i].token)].run);
  host_rows_ = 0;
}

void OutputStage::write_row(size_t index, const assay_run& run) {
  const RowFacts& facts = host_facts_.data()[index];
  const size_t row = rows_[index].row;
  const arithmetic::RowSummary summary{facts.top, arithmetic::log_of_sum(facts.total), facts.argmax};
  if (host_place_[index] >= 0) {
    const auto vocab = static_cast<size_t>(config_.vocab_size);
    const std::span<const float> logits(host_logits_.data() + static_cast<size_t>(host_place_[index]) * vocab, vocab);
    arithmetic::write_row(logits, summary, run, row);
    if (draws(run, row)) arithmetic::write_sample(logits, summary, run);
    return;
  }
  arithmetic::write_facts(summary, {facts.target, facts.rank}, run, row);
  if (!draws(run, row)) return;
  *run.output.sampled = facts.argmax;
  if (run.output.sampled_logprob != nullptr) *run.output.sampled_logprob = summary.logprob(facts.top);
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
