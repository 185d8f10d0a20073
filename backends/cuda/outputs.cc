#include "backends/cuda/outputs.h"

#include <algorithm>
#include <span>

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

}  // namespace

void OutputStage::write(const Operators& operators, Workspace& w, const Stream& stream) {
  std::vector<Row> rows;
  const size_t at_once = std::max<size_t>(1, kLogitBytes / (sizeof(float) * static_cast<size_t>(config_.vocab_size)));
  for (size_t t = 0; t < w.tokens.size(); ++t) {
    const Token& token = w.tokens[t];
    const uint32_t first = token.run->count - token.run->output_rows;
    if (token.index < first) continue;
    rows.push_back({static_cast<int32_t>(t), token.index - first});
    if (rows.size() == at_once) {
      write(rows, operators, w, stream);
      rows.clear();
    }
  }
  if (!rows.empty()) write(rows, operators, w, stream);
}

void OutputStage::write(const std::vector<Row>& rows, const Operators& operators, Workspace& w, const Stream& stream) {
  const int hidden = config_.hidden_size;
  const int vocab = config_.vocab_size;
  const int count = static_cast<int>(rows.size());
  const bool bf16 = config_.arithmetic == model::Arithmetic::kBf16;
  if (normed_rows_ < rows.size()) {
    normed_ = InputRows(rows.size(), hidden, bf16);
    normed_rows_ = rows.size();
  }
  logits_.reserve(rows.size() * static_cast<size_t>(vocab));
  segments_.reserve(segment_floats(count, vocab));
  facts_.reserve(rows.size());
  ints_.clear();
  for (const Row& row : rows) ints_.push(row.token);
  for (const Row& row : rows) {
    const assay_run& run = *w.tokens[static_cast<size_t>(row.token)].run;
    ints_.push(run.targets != nullptr ? run.targets[row.row] : -1);
  }
  ints_.upload(stream);

  NormArgs norm{.x = w.x.data(), .gather = ints_.at(0), .gamma = weights_.final_norm.gamma};
  norm.beta = weights_.final_norm.beta;
  norm.y = normed_.of(hidden);
  norm.tokens = count;
  norm.width = hidden;
  norm.epsilon = static_cast<float>(config_.norm_epsilon);
  norm.centred = config_.norm == model::Norm::kLayerNorm;
  normalise(norm, stream.get());

  LinearArgs output{.weight = weights_.output, .x = norm.y, .y = logits_.data()};
  output.y_stride = vocab;
  output.tokens = count;
  output.rounded = bf16;
  operators.linear(output, stream.get());

  ScanArgs scan{.logits = logits_.data(), .targets = ints_.at(rows.size()), .facts = facts_.data()};
  scan.segments = segments_.data();
  scan.rows = count;
  scan.vocab = vocab;
  scan_rows(scan, stream.get());
  host_facts_.resize(rows.size());
  check(cudaMemcpyAsync(host_facts_.data(), facts_.data(), rows.size() * sizeof(RowFacts), cudaMemcpyDeviceToHost,
                        stream.get()),
        "cudaMemcpyAsync");
  stream.wait();
  for (size_t i = 0; i < rows.size(); ++i) {
    const assay_run& run = *w.tokens[static_cast<size_t>(rows[i].token)].run;
    write_row(rows[i], run, host_facts_[i], logits_.data() + i * static_cast<size_t>(vocab), stream);
  }
}

void OutputStage::write_row(const Row& row, const assay_run& run, const RowFacts& facts, const float* logits,
                            const Stream& stream) {
  const arithmetic::RowSummary summary{facts.top, arithmetic::log_of_sum(facts.total), facts.argmax};
  if (wants_logits(run, row.row)) {
    host_logits_.resize(static_cast<size_t>(config_.vocab_size));
    check(cudaMemcpyAsync(host_logits_.data(), logits, host_logits_.size() * sizeof(float), cudaMemcpyDeviceToHost,
                          stream.get()),
          "cudaMemcpyAsync");
    stream.wait();
    arithmetic::write_row(host_logits_, summary, run, row.row);
    if (draws(run, row.row)) arithmetic::write_sample(host_logits_, summary, run);
    return;
  }
  arithmetic::write_facts(summary, {facts.target, facts.rank}, run, row.row);
  if (!draws(run, row.row)) return;
  *run.output.sampled = facts.argmax;
  if (run.output.sampled_logprob != nullptr) *run.output.sampled_logprob = summary.logprob(facts.top);
}

}  // namespace assay::cuda
