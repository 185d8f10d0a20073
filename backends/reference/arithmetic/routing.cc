#include "backends/reference/arithmetic/routing.h"

#include <algorithm>
#include <functional>
#include <limits>

#include "backends/reference/arithmetic/elementary.h"

namespace assay::arithmetic {
namespace {

constexpr float kMinusInfinity = -std::numeric_limits<float>::infinity();

// Softmax in place; the sum runs ascending.
void softmax(float* values, size_t count) {
  float top = values[0];
  for (size_t i = 1; i < count; ++i) top = Single::greater(values[i], top);
  float total = 0;
  for (size_t i = 0; i < count; ++i) {
    values[i] = exponential<Single>(values[i] - top);
    total += values[i];
  }
  for (size_t i = 0; i < count; ++i) values[i] = values[i] / total;
}

// Sets the choices of every group but the best `group_topk` to -infinity. scratch: 2 * experts floats.
void keep_best_groups(const model::MoeConfig& moe, float* choice, float* scratch) {
  const auto groups = static_cast<size_t>(moe.groups);
  const size_t size = static_cast<size_t>(moe.experts) / groups;
  const size_t counted = std::min(size, static_cast<size_t>(moe.topk / moe.group_topk));
  float* members = scratch;                 // (size)
  float* scores = scratch + groups * size;  // (groups)
  for (size_t g = 0; g < groups; ++g) {
    std::copy_n(choice + g * size, size, members);
    std::partial_sort(members, members + counted, members + size, std::greater<float>());
    scores[g] = 0;
    for (size_t i = 0; i < counted; ++i) scores[g] += members[i];
  }
  for (size_t g = 0; g < groups; ++g) {
    int better = 0;
    for (size_t h = 0; h < groups; ++h) better += scores[h] > scores[g] || (h < g && scores[h] == scores[g]);
    if (better >= moe.group_topk) std::fill_n(choice + g * size, size, kMinusInfinity);
  }
}

// The best of the choices that is not yet taken (taken ones are NaN), the lowest id among equals.
size_t best_choice(const float* choice, size_t count, std::span<const uint16_t> taken) {
  size_t best = count;
  for (size_t e = 0; e < count; ++e) {
    if (choice[e] == choice[e] && (best == count || choice[e] > choice[best])) best = e;
  }
  if (best < count) return best;
  size_t lowest = 0;  // nothing but NaN left: any expert not taken, so that the indices stay valid
  while (std::find(taken.begin(), taken.end(), static_cast<uint16_t>(lowest)) != taken.end()) ++lowest;
  return lowest;
}

// The largest of the choices that are left, -infinity if there is none. Taken ones are NaN; other groups' -infinity.
float best_left(const float* choice, size_t count) {
  float best = kMinusInfinity;
  for (size_t e = 0; e < count; ++e) best = choice[e] > best ? choice[e] : best;
  return best;
}

}  // namespace

float choose_experts(const model::MoeConfig& moe, const float* logits, std::span<const float> bias, float* scratch,
                     uint16_t* experts, float* weights) {
  const auto count = static_cast<size_t>(moe.experts);
  const auto topk = static_cast<size_t>(moe.topk);
  float* scores = scratch;          // (experts) what weights are made of
  float* choice = scratch + count;  // (experts) what the choice looks at
  std::copy_n(logits, count, scores);
  const bool sigmoid_scores = moe.score == model::RouterScore::kSigmoid;
  if (sigmoid_scores) {
    for (size_t e = 0; e < count; ++e) scores[e] = sigmoid<Single>(scores[e]);
  } else if (moe.pre_softmax) {
    softmax(scores, count);
  }
  for (size_t e = 0; e < count; ++e) choice[e] = bias.empty() ? scores[e] : scores[e] + bias[e];
  if (moe.groups > 0) keep_best_groups(moe, choice, choice + count);
  float last = 0;  // choice score of the expert chosen last
  for (size_t k = 0; k < topk; ++k) {
    const size_t best = best_choice(choice, count, {experts, k});
    experts[k] = static_cast<uint16_t>(best);
    last = choice[best];
    choice[best] = std::numeric_limits<float>::quiet_NaN();
  }
  const float margin = last - best_left(choice, count);
  std::sort(experts, experts + topk);
  for (size_t k = 0; k < topk; ++k) weights[k] = scores[experts[k]];
  if (sigmoid_scores && topk > 1) {
    float total = 0;
    for (size_t k = 0; k < topk; ++k) total += weights[k];
    for (size_t k = 0; k < topk; ++k) weights[k] = weights[k] / (total + 1e-20f);
  } else if (!sigmoid_scores && !moe.pre_softmax) {
    softmax(weights, topk);
  }
  if (moe.scaling_factor != 1) {
    const auto factor = static_cast<float>(moe.scaling_factor);
    for (size_t k = 0; k < topk; ++k) weights[k] = weights[k] * factor;
  }
  return margin;
}

}  // namespace assay::arithmetic
