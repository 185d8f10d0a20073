#include "backends/cuda/vendor/fast_prefill.h"

#include <utility>

#include "backends/cuda/runtime/memory_text.h"

namespace assay::cuda::vendor {
namespace {

constexpr char kRefused[] = "backend option 'prefill': fast cannot be used; take exact";
constexpr char kOption[] = "prefill=fast: ";

std::string shape_text(const GemmPlan& plan) { return std::to_string(plan.rows) + " x " + std::to_string(plan.cols); }

}  // namespace

Status FastPrefill::usable(bool bf16, const std::vector<std::filesystem::path>& folders) {
  if (!bf16) return {};
  return open_object(kCublasLt, folders).status().with(kRefused);
}

Result<std::unique_ptr<FastPrefill>> FastPrefill::open(const PrefillModel& model,
                                                       const std::vector<std::filesystem::path>& folders) {
  auto fast = std::make_unique<FastPrefill>();
  if (!model.bf16) {
    fast->notes_.push_back(std::string(kOption) + "fp32 arithmetic has no fast kernels; the own ones are used");
    return fast;
  }
  Result<FastLinear> linear = FastLinear::open(folders, model.matrices, model.most_tokens);
  if (!linear) return linear.status().with(kRefused);
  fast->linear_ = *std::move(linear);
  Result<FastAttention> attention = FastAttention::open(folders, model.heads, {kLeastAttention, model.most_tokens});
  const std::string no_attention = attention ? "" : attention.status().message();
  if (attention) fast->attention_ = *std::move(attention);
  fast->describe(no_attention);
  return fast;
}

void FastPrefill::describe(const std::string& no_attention) {
  const auto note = [&](const std::string& text) { notes_.push_back(kOption + text); };
  note(linear_.version() + " for dense layers of prompts from " + std::to_string(kLeastTokens) + " tokens on; " +
       gigabytes(linear_.bytes()) + " of copies and workspace");
  std::string unequal;
  for (const GemmPlan& plan : linear_.plans()) {
    note("layers of " + plan.text() + " (algorithm.tile.stages.cluster.custom)");
    if (!plan.rows_equal) unequal += (unequal.empty() ? "" : ", ") + shape_text(plan);
  }
  for (const std::string& shape : linear_.left_out()) note("layers of " + shape + " stay with our kernels");
  note(attention_ ? attention_->version() + " for attention from " + std::to_string(kLeastAttention) + " tokens on, " +
                        attention_->engine()
                  : "our own attention: " + no_attention);
  equal_rows_ = unequal.empty();
  note(std::string("determinism L1 alone; ") +
       (equal_rows_ ? "rows of every product are equal among any neighbours, but a prompt cut otherwise has other bits"
                    : "rows differ with their neighbours in products of " + unequal));
}

bool FastPrefill::linear(const LinearArgs& args, cudaStream_t stream) const { return linear_.run(args, stream); }

bool FastPrefill::attend(const AttendArgs& args, const RunPlace& run, cudaStream_t stream) {
  return attention_ && run.count >= kLeastAttention && attention_->run(args, run, stream);
}

uint64_t FastPrefill::bytes() const { return linear_.bytes() + (attention_ ? attention_->bytes() : 0); }

}  // namespace assay::cuda::vendor
