// The operators of a transformer for one token, plainly written: the oracle of the fast kernels. fp32 throughout;
// where `rounded` is set, the result is an operator input of bf16 arithmetic and is rounded to bf16.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "backends/model/config/model_config.h"
#include "backends/reference/reference_weights.h"

namespace assay::reference {

// (rows): dot(weight row, x), plus the bias.
std::vector<float> multiply(const Linear& linear, std::span<const float> x);

// RMSNorm: x * 1/sqrt(mean(x^2) + eps) * gamma. LayerNorm: d = x - mean(x); fma(d / sqrt(mean(d^2) + eps), gamma,
// beta).
std::vector<float> normalise(const model::ModelConfig& config, const NormWeights& norm, std::span<const float> x,
                             bool rounded);

// Rotates the leading 2 * cosine.size() elements of one head: pairs (i, i + half), or (2i, 2i + 1) when interleaved:
// a' = a cos - b sin = fma(a, cos, -(b sin)), b' = b cos + a sin = fma(b, cos, a sin).
void rotate(std::span<float> head, std::span<const float> cosine, std::span<const float> sine, bool interleaved);

// Activation of one fc1 result, each element times `factor` (the router's weight; 1 leaves it untouched).
std::vector<float> activate(model::Activation activation, std::span<const float> fc1, float factor, bool rounded);

// Keys or values of one sequence: the vector (channels) of a position.
using AtPosition = std::function<const float*(size_t position)>;

// One query head over positions 0 .. count-1, as attend.h defines it.
std::vector<float> attend(std::span<const float> query, size_t count, const AtPosition& key, const AtPosition& value,
                          float scale, bool rounded);

}  // namespace assay::reference
