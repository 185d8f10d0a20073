// The feed-forward part of a decode step, up to 8 tokens: router, routed experts and shared expert in two kernels.
// A layer without experts is a shared expert alone.
//
// fc1 of an expert is tiled with its rows interleaved: tile j holds gate rows 8 j .. 8 j + 7, then up rows 8 j .. 8 j
// + 7.
#pragma once

#include <cstddef>
#include <cstdint>

#include "backends/cuda/fast/launch.h"
#include "backends/cuda/fast/shapes.h"

namespace assay::cuda::fast {

struct ExpertWeights {
  const void* router = nullptr;      // (experts, kHidden) bf16 tiles
  const float* bias = nullptr;       // (experts) for the choice only; or null
  const void* fc1 = nullptr;         // (experts, 2 * width, kHidden) bf16 tiles
  const void* fc2 = nullptr;         // (experts, kHidden, width) bf16 tiles
  const void* shared_fc1 = nullptr;  // (2 * shared_width, kHidden) bf16 tiles
  const void* shared_fc2 = nullptr;  // (kHidden, shared_width) bf16 tiles
  int experts = 0;                   // multiple of 16, <= 64; 0: none
  int topk = 0;                      // <= 8
  int width = 0;                     // multiple of 64
  int shared_width = 0;              // multiple of 64
  float scaling_factor = 1.0f;
};

struct ExpertsArgs {
  ExpertWeights weights;
  const float* gamma = nullptr;  // (kHidden)
  float eps = 0;
  int tokens = 0;
  bool rounded_logits = true;  // to bf16
  float* x = nullptr;          // (tokens, kHidden) fp32; experts_down adds to it
  float* logits = nullptr;     // (tokens, experts) of the router
  uint16_t* chosen = nullptr;  // (tokens, topk) ascending, written by experts_up; or null
  float* margins = nullptr;    // (tokens) of the router, written by experts_up; or null
  uint32_t* done = nullptr;    // 0 before experts_up
  void* inner = nullptr;  // (tokens, topk, width) bf16 in operand order, ascending expert; 512 bytes more may be read
  void* shared_inner = nullptr;  // (tokens, shared_width) bf16 in operand order; likewise
};

// Bytes of weights that a step reads when `active` experts have tokens.
constexpr size_t up_bytes(const ExpertWeights& w, int active) {
  return static_cast<size_t>(kHidden) * 2 * (static_cast<size_t>(w.experts) + 2 * (active * w.width + w.shared_width));
}
constexpr size_t down_bytes(const ExpertWeights& w, int active) {
  return static_cast<size_t>(kHidden) * 2 * (static_cast<size_t>(active) * w.width + w.shared_width);
}

cudaError_t experts_up(const ExpertsArgs& args, const Launch& how);
cudaError_t experts_down(const ExpertsArgs& args, const Launch& how);

}  // namespace assay::cuda::fast
