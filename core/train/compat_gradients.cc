#include "core/train/compat_gradients.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>

#include "core/train/gradients.h"

namespace assay::train {
namespace {

using TensorShape = std::vector<int64_t>;

constexpr float kNearZero = 1e-4F;
constexpr float kLeastNorm = 1e-30F;

// A tensor that is looked at in another shape, or in part.
struct CompatSide {
  TensorShape shape;
  std::span<const float> values;
  std::vector<float> own;  // what `values` shows where the elements have another order than they had

  CompatSide(const CompatState& state) : shape(state.shape), values(state.values) {}
};

int64_t shape_count(const TensorShape& shape) {
  return std::accumulate(shape.begin(), shape.end(), int64_t{1}, std::multiplies<>());
}

std::string shown_shape(const TensorShape& shape) { return fmt::format("[{}]", fmt::join(shape, ", ")); }

bool reshape_side(const TensorShape& shape, CompatSide* side) {
  if (shape_count(shape) != static_cast<int64_t>(side->values.size())) return false;
  side->shape = shape;
  return true;
}

// The first `rows` of its first axis.
void cut_rows(int64_t rows, CompatSide* side) {
  const auto row = static_cast<size_t>(shape_count({side->shape.begin() + 1, side->shape.end()}));
  side->shape[0] = std::min(rows, side->shape[0]);
  side->values = side->values.first(static_cast<size_t>(side->shape[0]) * row);
}

enum class Joined { kTogether, kPassedOver, kFailed };

// Two states of different shapes, brought together in their way.
class Joining {
 public:
  Joining(const std::string& key, CompatSide* left, CompatSide* right) : key_(key), left_(*left), right_(*right) {}

  Joined run(const TensorShape* left_weight, const TensorShape* right_weight) {
    if (left_weight == nullptr || right_weight == nullptr) return fail("KeyError: '" + compat_weight(key_) + "'");
    TensorShape shape = *left_weight;
    const bool padded = shape != *right_weight;
    if (padded) {
      if (!is_vocabulary(key_)) {
        return fail(fmt::format("AssertionError: Tensor shape mismatch for {}: {} vs {}", key_, shown_shape(shape),
                                shown_shape(*right_weight)));
      }
      if (!reshape_side(shape, &left_) || !reshape_side(*right_weight, &right_)) return fail_shape();
      if (shape.empty() || right_weight->empty()) return fail("IndexError: tuple index out of range");
      const int64_t rows = std::min(shape[0], right_weight->front());
      cut_rows(rows, &left_);
      cut_rows(rows, &right_);
    } else if (shape.size() == 3 || shape.size() == 2) {
      TensorShape with_axis = shape;
      with_axis.insert(with_axis.begin() + 1, 1);
      if (!reshape_side(with_axis, &left_)) return fail_shape();
    }
    if (!padded && is_row_parallel(key_)) return unshard(shape);
    if (reshape_side(left_.shape, &right_)) return Joined::kTogether;
    if (is_vocabulary(key_)) return Joined::kPassedOver;
    return fail(fmt::format("AssertionError: Tensor shape mismatch for {}: {} vs {}, simple reshape failed", key_,
                            shown_shape(left_.shape), shown_shape(right_.shape)));
  }

  const std::string& failure() const { return failure_; }

 private:
  Joined fail(std::string message) {
    failure_ = std::move(message);
    return Joined::kFailed;
  }
  Joined fail_shape() { return fail(fmt::format("RuntimeError: {}: the state is not of its weight's size", key_)); }

  // The right side alone; the left one keeps the order that it has.
  Joined unshard(const TensorShape& weight) {
    const TensorShape& state = right_.shape;
    if (weight.size() < 3 || state.size() < 3) return fail("IndexError: tuple index out of range");
    const Unsharding layout{.outer = shape_count({state.begin(), state.end() - 2}),
                            .tp = state[2],
                            .rows = weight[1],
                            .columns = weight[2]};
    if (layout.tp == 0) return fail("ZeroDivisionError: " + key_);
    const bool whole = layout.columns % layout.tp == 0;
    const int64_t elements = layout.outer * layout.rows * layout.columns;
    if (!whole || elements != static_cast<int64_t>(right_.values.size())) return fail_shape();
    TensorShape shape(state.begin(), state.end() - 2);
    shape.insert(shape.end(), {layout.rows, layout.columns});
    right_.own = unshard_rows({right_.values.begin(), right_.values.end()}, layout);
    right_.values = right_.own;
    right_.shape = shape;
    return Joined::kTogether;
  }

  const std::string& key_;
  CompatSide& left_;
  CompatSide& right_;
  std::string failure_;
};

// Not a number where one of the tensors has one, or where the norms are infinite.
float relative_difference(const CompatSide& left, const CompatSide& right) {
  double difference = 0;
  double norm = 0;
  for (size_t i = 0; i < left.values.size(); ++i) {
    const float d = left.values[i] - right.values[i];
    difference += d * d;  // squares are fp32 there
    norm += right.values[i] * right.values[i];
  }
  return std::sqrt(static_cast<float>(difference)) / (std::sqrt(static_cast<float>(norm)) + kLeastNorm);
}

bool has_large(const CompatSide& side) {
  return std::any_of(side.values.begin(), side.values.end(), [](float v) { return !(std::fabs(v) <= kNearZero); });
}

}  // namespace

std::string compat_weight(std::string_view key) {
  constexpr std::string_view kPrefix = "optimizer.state.exp_avg.";
  std::string name(key);
  for (size_t at = name.find(kPrefix); at != std::string::npos; at = name.find(kPrefix, at)) {
    name.erase(at, kPrefix.size());
  }
  return name;
}

void CompatGradients::fail(const std::string& message) {
  if (failure_.empty()) failure_ = message;
}

void CompatGradients::compare(const std::string& key, const CompatState& left, const CompatState& right) {
  CompatSide a(left);
  CompatSide b(right);
  if (a.shape != b.shape) {
    Joining joining(key, &a, &b);
    const Joined outcome = joining.run(left.weight, right.weight);
    if (outcome == Joined::kFailed) fail(joining.failure());
    if (outcome != Joined::kTogether) return;
  }
  if (a.shape != b.shape || left.dtype != right.dtype) {
    return fail(fmt::format("AssertionError: Tensor meta mismatch for {}: {}/{} vs {}/{}", key, shown_shape(a.shape),
                            left.dtype, shown_shape(b.shape), right.dtype));
  }
  if (a.values.empty()) return fail("RuntimeError: " + key + ": the largest value of an empty tensor");
  some_nonzero_ = some_nonzero_ || has_large(a) || has_large(b);
  const float relative = relative_difference(a, b);
  if (relative <= gradient_bound()) return;
  fail(fmt::format("AssertionError: {}: relative norm magnitude {}, the bound is {:.3g}", key, relative,
                   gradient_bound()));
}

CompatVerdict CompatGradients::verdict() const {
  if (!failure_.empty()) return {CompatVerdict::kFailed, failure_};
  if (!some_nonzero_) return {CompatVerdict::kFailed, "AssertionError: No non-zero tensors found in this comparison"};
  return {CompatVerdict::kPassed, "all tensors match"};
}

}  // namespace assay::train
