#include "plugins/engines/faulty/run_parts.h"

#include <algorithm>

namespace assay::engines {

std::pair<assay_run, assay_run> split(const assay_run& run, uint32_t border, const assay_model_info& info) {
  assay_run head = run;
  assay_run tail = run;
  head.count = border;
  tail.count = run.count - border;
  tail.ids += border;
  tail.start += border;
  tail.output_rows = std::min(run.output_rows, tail.count);
  head.output_rows = run.output_rows - tail.output_rows;
  head.output.sampled = nullptr;
  head.output.sampled_logprob = nullptr;
  const auto skip = [&](auto*& values, size_t width) {
    if (values != nullptr) values += head.output_rows * width;
  };
  const auto top_n = static_cast<size_t>(run.top_n);
  skip(tail.targets, 1);
  skip(tail.output.target_logprobs, 1);
  skip(tail.output.target_ranks, 1);
  skip(tail.output.argmax, 1);
  skip(tail.output.argmax_logprobs, 1);
  skip(tail.output.top_ids, top_n);
  skip(tail.output.top_logprobs, top_n);
  skip(tail.output.logits, static_cast<size_t>(info.vocab_size));
  if (tail.output.routing != nullptr) {
    tail.output.routing += static_cast<size_t>(border) * static_cast<size_t>(info.moe_layers * info.moe_topk);
  }
  return {head, tail};
}

}  // namespace assay::engines
