#include "backends/reference/operators.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "backends/reference/arithmetic/attend.h"
#include "backends/reference/arithmetic/dot.h"
#include "backends/reference/arithmetic/elementary.h"
#include "backends/reference/arithmetic/formats.h"

namespace assay::reference {

using arithmetic::Single;

std::vector<float> multiply(const Linear& linear, std::span<const float> x) {
  std::vector<float> y(linear.rows);
  for (size_t r = 0; r < linear.rows; ++r) {
    y[r] = arithmetic::dot(&linear.weight[r * linear.cols], x.data(), linear.cols);
    if (!linear.bias.empty()) y[r] = y[r] + linear.bias[r];
  }
  return y;
}

std::vector<float> normalise(const model::ModelConfig& config, const NormWeights& norm, std::span<const float> x,
                             bool rounded) {
  const auto n = static_cast<float>(x.size());
  std::vector<float> y(x.begin(), x.end());
  if (config.norm == model::Norm::kLayerNorm) {
    const float mean = arithmetic::sum(x.data(), x.size()) / n;
    for (float& v : y) v = v - mean;
  }
  const float square = arithmetic::dot(y.data(), y.data(), y.size()) / n;
  const float scale = 1.0f / std::sqrt(square + static_cast<float>(config.norm_epsilon));
  for (size_t i = 0; i < y.size(); ++i) {
    const float v = y[i] * scale;
    y[i] = norm.beta.empty() ? v * norm.gamma[i] : std::fma(v, norm.gamma[i], norm.beta[i]);
    if (rounded) y[i] = arithmetic::round_bf16(y[i]);
  }
  return y;
}

void rotate(std::span<float> head, std::span<const float> cosine, std::span<const float> sine, bool interleaved) {
  const size_t half = cosine.size();
  for (size_t i = 0; i < half; ++i) {
    float& first = head[interleaved ? 2 * i : i];
    float& second = head[interleaved ? 2 * i + 1 : i + half];
    const float a = first;
    const float b = second;
    first = std::fma(a, cosine[i], -(b * sine[i]));
    second = std::fma(b, cosine[i], a * sine[i]);
  }
}

std::vector<float> activate(model::Activation activation, std::span<const float> fc1, float factor, bool rounded) {
  const bool gated = activation == model::Activation::kSwiglu;
  std::vector<float> y(gated ? fc1.size() / 2 : fc1.size());
  for (size_t i = 0; i < y.size(); ++i) {
    float v = fc1[i];
    switch (activation) {
      case model::Activation::kSwiglu:
        v = arithmetic::silu<Single>(v) * fc1[i + y.size()];
        break;
      case model::Activation::kSquaredRelu:
        v = arithmetic::squared_relu<Single>(v);
        break;
      case model::Activation::kGeluErf:
        v = arithmetic::gelu_erf<Single>(v);
        break;
      case model::Activation::kGeluTanh:
        v = arithmetic::gelu_tanh<Single>(v);
        break;
    }
    v = v * factor;
    y[i] = rounded ? arithmetic::round_bf16(v) : v;
  }
  return y;
}

std::vector<float> attend(std::span<const float> query, size_t count, const AtPosition& key, const AtPosition& value,
                          float scale, bool rounded) {
  struct Split {
    float top = 0;
    float total = 0;
    std::vector<float> weighted;  // (channels)
  };
  std::vector<Split> splits;
  for (size_t begin = 0; begin < count; begin += arithmetic::kSplit) {
    const size_t length = std::min(arithmetic::kSplit, count - begin);
    std::vector<float> e(length);
    for (size_t j = 0; j < length; ++j) e[j] = arithmetic::dot(query.data(), key(begin + j), query.size()) * scale;
    Split split{e[0], 0, std::vector<float>(query.size(), 0.0f)};
    for (const float score : e) split.top = Single::greater(score, split.top);
    for (float& score : e) score = arithmetic::exponential<Single>(score - split.top);
    split.total = arithmetic::sum(e.data(), length);
    for (size_t j = 0; j < length; ++j) {
      const float* v = value(begin + j);
      for (size_t d = 0; d < query.size(); ++d) split.weighted[d] = std::fma(e[j], v[d], split.weighted[d]);
    }
    splits.push_back(std::move(split));
  }
  float top = splits[0].top;
  for (const Split& split : splits) top = Single::greater(split.top, top);
  float total = 0;
  std::vector<float> result(query.size(), 0.0f);
  for (const Split& split : splits) {
    const float factor = arithmetic::exponential<Single>(split.top - top);
    total = std::fma(split.total, factor, total);
    for (size_t d = 0; d < result.size(); ++d) result[d] = std::fma(split.weighted[d], factor, result[d]);
  }
  for (float& v : result) {
    v = v / total;
    if (rounded) v = arithmetic::round_bf16(v);
  }
  return result;
}

}  // namespace assay::reference
