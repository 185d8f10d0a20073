#include "backends/cpu/vocabulary.h"

#include <span>

#include "backends/reference/arithmetic/vocabulary.h"

namespace assay::cpu {
namespace {

constexpr size_t kLogitBytes = size_t{16} << 20;  // held at a time

// A token that gets outputs, and the row of its run that they belong to.
struct OutputRow {
  size_t token;
  size_t row;
};

class OutputStage {
 public:
  OutputStage(const model::ModelConfig& config, const Weights& weights, Executor& executor, Workspace& w)
      : config_(config),
        weights_(weights),
        executor_(executor),
        w_(w),
        vocab_(static_cast<size_t>(config.vocab_size)),
        segments_((vocab_ + arithmetic::kSegment - 1) / arithmetic::kSegment) {}

  void run(std::span<const OutputRow> rows) {
    const auto hidden = static_cast<size_t>(config_.hidden_size);
    const bool bf16 = config_.arithmetic == model::Arithmetic::kBf16;
    const Kernels& k = executor_.kernels();
    logits_.resize(rows.size(), vocab_);
    std::vector<const float*> in;
    for (const OutputRow& row : rows) in.push_back(w_.normed[row.token]);
    executor_.each(rows.size(), hidden * 4, [&](size_t i) {
      k.normalise({w_.x[rows[i].token], weights_.final_norm.gamma, weights_.final_norm.beta, w_.normed[rows[i].token],
                   hidden, static_cast<float>(config_.norm_epsilon), config_.norm == model::Norm::kLayerNorm, bf16});
    });
    executor_.linear({weights_.output, nullptr}, in.data(), logits_.get(), rows.size(), [&](size_t begin, size_t end) {
      for (size_t i = 0; i < rows.size() && bf16; ++i) k.round(logits_[i] + begin, end - begin);
    });
    std::vector<arithmetic::Segment> found(rows.size() * segments_);
    executor_.each(found.size(), arithmetic::kSegment * 4, [&](size_t i) {
      const size_t begin = i % segments_ * arithmetic::kSegment;
      const size_t length = std::min(arithmetic::kSegment, vocab_ - begin);
      const SegmentResult segment = k.scan_segment(logits_[i / segments_] + begin, length);
      found[i] = {segment.top, segment.total, static_cast<int32_t>(begin + segment.argmax)};
    });
    executor_.each(rows.size(), vocab_ * 4, [&](size_t i) {
      const assay_run& run = *w_.tokens[rows[i].token].run;
      const std::span<const float> logits(logits_[i], vocab_);
      const auto summary = arithmetic::summarise({&found[i * segments_], segments_});
      arithmetic::write_row(logits, summary, run, rows[i].row);
      if (rows[i].row + 1 == run.output_rows && run.output.sampled != nullptr) {
        arithmetic::write_sample(logits, summary, run);
      }
    });
  }

 private:
  const model::ModelConfig& config_;
  const Weights& weights_;
  Executor& executor_;
  Workspace& w_;
  size_t vocab_;
  size_t segments_;
  Rows logits_;
};

}  // namespace

void write_outputs(const model::ModelConfig& config, const Weights& weights, Executor& executor, Workspace& w) {
  std::vector<OutputRow> rows;
  for (size_t t = 0; t < w.tokens.size(); ++t) {
    const assay_run& run = *w.tokens[t].run;
    const uint32_t first = run.count - run.output_rows;
    if (w.tokens[t].index >= first) rows.push_back({t, w.tokens[t].index - first});
  }
  OutputStage stage(config, weights, executor, w);
  const size_t at_once = std::max<size_t>(1, kLogitBytes / (sizeof(float) * static_cast<size_t>(config.vocab_size)));
  for (size_t begin = 0; begin < rows.size(); begin += at_once) {
    stage.run(std::span(rows).subspan(begin, std::min(at_once, rows.size() - begin)));
  }
}

}  // namespace assay::cpu
