#include "core/train/gradients.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <memory>
#include <optional>
#include <utility>

#include "backends/model/checkpoint/checkpoint.h"
#include "core/train/checkpoints.h"
#include "core/train/compat_gradients.h"

namespace assay::train {
namespace {

using model::Checkpoint;
using model::TensorInfo;

constexpr std::string_view kState = "optimizer.state.exp_avg.";
constexpr float kZeroish = 1e-4F;

bool is_gradient(const TensorInfo& tensor) {
  return tensor.key.starts_with("optimizer.") && tensor.key.find(".exp_avg.") != std::string::npos;
}

std::string text_of(const std::vector<int64_t>& shape) {
  std::string text;
  for (const int64_t size : shape) text += (text.empty() ? "" : " x ") + std::to_string(size);
  return text;
}

Result<std::vector<float>> load(const Checkpoint& checkpoint, const TensorInfo& tensor) {
  std::vector<float> values(static_cast<size_t>(tensor.elements()));
  if (Status read = checkpoint.read(tensor.key, {}, model::Dtype::kFloat32, values.data()); !read.ok()) return read;
  return values;
}

struct Sides {
  std::vector<float> left;
  std::vector<float> right;
};

// Brings a state of (layers, 1, tensor-parallel ranks, part of a rank) to the order of its weight (layers, rows,
// columns), which has as many elements. False: it is of no such shape.
bool unshard(const std::vector<int64_t>& weight, const std::vector<int64_t>& state, std::vector<float>* values) {
  if (state == weight) return true;
  if (weight.size() != 3 || state.size() != 4) return false;
  const int64_t tp = state[2];
  if (tp < 1 || weight[2] % tp != 0 || state[3] != weight[1] * (weight[2] / tp)) return false;
  *values = unshard_rows(*values, {.outer = weight[0], .tp = tp, .rows = weight[1], .columns = weight[2]});
  return true;
}

// Brings both to one order of elements. The text: why they cannot be.
std::optional<std::string> align(const Checkpoint& a, const Checkpoint& b, const TensorInfo& left,
                                 const TensorInfo& right, Sides* sides) {
  if (left.shape == right.shape) return std::nullopt;
  const std::string key = left.key.starts_with(kState) ? left.key.substr(kState.size()) : left.key;
  const TensorInfo* left_weight = a.contents().find(key);
  const TensorInfo* right_weight = b.contents().find(key);
  const auto refuse = [&] { return fmt::format("shapes {} and {}", text_of(left.shape), text_of(right.shape)); };
  if (left_weight == nullptr || right_weight == nullptr) return refuse();
  const auto fits = [](const std::vector<float>& values, const TensorInfo& weight) {
    return values.size() == static_cast<size_t>(weight.elements());
  };
  if (!fits(sides->left, *left_weight) || !fits(sides->right, *right_weight)) return refuse();
  const std::vector<int64_t>& shape = left_weight->shape;
  if (shape != right_weight->shape) {
    if (!is_vocabulary(left.key) || shape.size() != 2 || right_weight->shape.size() != 2 ||
        shape[1] != right_weight->shape[1])
      return refuse();
    const auto common = static_cast<size_t>(std::min(shape[0], right_weight->shape[0]) * shape[1]);  // padding apart
    sides->left.resize(common);
    sides->right.resize(common);
    return std::nullopt;
  }
  if (!is_row_parallel(key)) return std::nullopt;
  if (!unshard(shape, left.shape, &sides->left) || !unshard(shape, right.shape, &sides->right)) return refuse();
  return std::nullopt;
}

struct Distance {
  double relative = 0;
  float largest = 0;  // absolute value on either side
  bool finite = true;
  bool equal = true;
};

Distance distance_of(const Sides& sides) {
  Distance distance;
  double difference = 0;
  double norm = 0;
  for (size_t i = 0; i < sides.left.size(); ++i) {
    const float l = sides.left[i];
    const float r = sides.right[i];
    distance.finite = distance.finite && std::isfinite(l) && std::isfinite(r);
    distance.equal = distance.equal && l == r;
    distance.largest = std::max({distance.largest, std::fabs(l), std::fabs(r)});
    const double d = static_cast<double>(l) - r;
    difference += d * d;
    norm += static_cast<double>(r) * r;
  }
  distance.relative = std::sqrt(difference) / (std::sqrt(norm) + 1e-30);
  return distance;
}

class Comparison {
 public:
  GradientVerdicts run(const std::vector<std::string>& folders) {
    verdict_.verdict = Verdict::kIdentical;
    theirs_ = {CompatVerdict::kPassed, "all tensors match"};
    judge(folders);
    return {std::move(verdict_), std::move(theirs_)};
  }

 private:
  void judge(const std::vector<std::string>& folders) {
    if (folders.size() < 2) {
      refuse("AssertionError: This test requires 2 or more checkpoints");
      return settle(Verdict::kInvalid, "",
                    "one checkpoint alone: there is nothing to compare it with; add MODEL_ARGS_2");
    }
    std::vector<std::unique_ptr<Checkpoint>> all;
    for (const std::string& folder : folders) {
      Result<std::unique_ptr<Checkpoint>> opened = Checkpoint::open(folder);
      if (!opened) {
        refuse("FileNotFoundError: " + opened.status().message());
        return settle(Verdict::kInvalid, "", opened.status().message());
      }
      all.push_back(*std::move(opened));
    }
    for (size_t i = 1; i < all.size(); ++i) compare(*all[0], *all[i], folders[i]);
  }

  void refuse(const std::string& message) {
    if (theirs_.passes()) theirs_ = {CompatVerdict::kFailed, message};
  }
  static CompatState state_of(const Checkpoint& checkpoint, const TensorInfo& tensor,
                              const std::vector<float>& values) {
    const TensorInfo* weight = checkpoint.contents().find(compat_weight(tensor.key));
    return {.shape = tensor.shape,
            .dtype = tensor.torch_dtype,
            .values = values,
            .weight = weight == nullptr ? nullptr : &weight->shape};
  }

  void settle(Verdict verdict, const std::string& metric, const std::string& message) {
    Finding found;
    found.verdict = verdict;
    found.message = message;
    verdict_.metrics.push_back({metric.empty() ? "gradients" : metric, verdict, {found}});
    if (worst(verdict, verdict_.verdict) == verdict_.verdict) return;
    verdict_.verdict = verdict;
    verdict_.reason = verdict_.metrics.back().metric + ": " + message;
  }

  void compare(const Checkpoint& a, const Checkpoint& b, const std::string& name) {
    size_t compared = 0;
    size_t different = 0;
    double largest = 0;
    bool nonzero = false;
    CompatGradients theirs;
    const auto only_one_has = [&theirs](const std::string& key) {
      theirs.fail("AssertionError: Optimizer tensor keys mismatch: " + key);
    };
    for (const TensorInfo& right : b.contents().tensors) {
      if (!is_gradient(right) || a.contents().find(right.key) != nullptr) continue;
      only_one_has(right.key);
      settle(Verdict::kInvalid, right.key, name + " has it, the first checkpoint has not");
    }
    for (const TensorInfo& left : a.contents().tensors) {
      if (!is_gradient(left)) continue;
      const TensorInfo* right = b.contents().find(left.key);
      if (right == nullptr) {
        only_one_has(left.key);
        settle(Verdict::kInvalid, left.key, "the first checkpoint has it, " + name + " has not");
        continue;
      }
      Result<std::vector<float>> l = load(a, left);
      Result<std::vector<float>> r = load(b, *right);
      if (!l || !r) {
        theirs.fail("RuntimeError: " + left.key + " cannot be read");
        settle(Verdict::kInvalid, left.key, (!l ? l : r).status().message());
        continue;
      }
      Sides sides{*std::move(l), *std::move(r)};
      theirs.compare(left.key, state_of(a, left, sides.left), state_of(b, *right, sides.right));
      if (const std::optional<std::string> refused = align(a, b, left, *right, &sides)) {
        settle(Verdict::kInvalid, left.key, *refused + " in " + name);
        continue;
      }
      const Distance distance = distance_of(sides);
      ++compared;
      different += distance.equal ? 0 : 1;
      largest = std::max(largest, distance.relative);
      nonzero = nonzero || distance.largest > kZeroish;
      if (!distance.finite) {
        settle(Verdict::kInvalid, left.key, "a value is no finite number in " + name + " or the first checkpoint");
      } else if (distance.relative > gradient_bound()) {
        settle(Verdict::kDiverged, left.key,
               fmt::format("{}: relative difference {:.3g}, the bound is {:.3g}", name, distance.relative,
                           gradient_bound()));
      }
    }
    if (!theirs.verdict().passes()) refuse(theirs.verdict().message);
    if (compared == 0)
      return settle(Verdict::kInvalid, "", name + ": no optimizer state (optimizer.*.exp_avg.*) to compare");
    if (!nonzero)
      return settle(Verdict::kInvalid, "", name + ": all gradients are zero, or nearly so: nothing was compared");
    settle(different == 0 ? Verdict::kIdentical : Verdict::kEquivalent, "",
           fmt::format("{}: {} of {} tensors differ, the largest relative difference is {:.3g}, the bound {:.3g}", name,
                       different, compared, largest, gradient_bound()));
  }

  CaseVerdict verdict_;
  CompatVerdict theirs_;
};

}  // namespace

bool is_vocabulary(std::string_view key) {
  return key.find("embedding.word_embeddings.weight") != std::string_view::npos ||
         key.find(".output_layer.weight") != std::string_view::npos;
}

bool is_row_parallel(std::string_view key) {
  return key.ends_with("mlp.linear_fc2.weight") || key.ends_with("self_attention.linear_proj.weight");
}

double gradient_bound() { return 4 * std::pow(1.03, 33) * 0.0078125; }

std::vector<float> unshard_rows(const std::vector<float>& state, const Unsharding& shape) {
  std::vector<float> whole(state.size());
  const int64_t part = shape.columns / shape.tp;
  size_t from = 0;
  for (int64_t o = 0; o < shape.outer; ++o) {
    for (int64_t t = 0; t < shape.tp; ++t) {
      for (int64_t r = 0; r < shape.rows; ++r) {
        const auto to = static_cast<size_t>((o * shape.rows + r) * shape.columns + t * part);
        std::copy_n(state.begin() + static_cast<ptrdiff_t>(from), part, whole.begin() + static_cast<ptrdiff_t>(to));
        from += static_cast<size_t>(part);
      }
    }
  }
  return whole;
}

GradientVerdicts judge_checkpoints_twice(const std::vector<std::string>& folders) { return Comparison().run(folders); }

CaseVerdict judge_checkpoints(const std::vector<std::string>& folders) { return judge_checkpoints_twice(folders).ours; }

void judge_gradients(const CasePlan& plan, CaseResult* result) {
  std::vector<std::string> folders;
  for (const Job& job : plan.runs)
    folders.push_back((std::filesystem::path(job.folders.save) / iteration_name(1)).string());
  GradientVerdicts judged = judge_checkpoints_twice(folders);
  result->verdict = std::move(judged.ours);
  result->compat = std::move(judged.theirs);
}

}  // namespace assay::train
