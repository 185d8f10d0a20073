#include "backends/cuda/fast/attention_math.cuh"
#include "backends/cuda/fast/plain.h"
#include "backends/cuda/fast/weight_stream.cuh"

namespace assay::cuda::fast {
namespace {

// Grid (row tiles, tokens), one warp. Where `logits` is set, the matrix is that of the expert that the token's
// `rank`-th choice names.
struct Choice {
  const float* logits = nullptr;  // (tokens, experts)
  const float* bias = nullptr;
  int experts = 0;
  int topk = 0;
  int rank = 0;
  size_t stride = 0;
  float scaling_factor = 1.0f;
};

__device__ int chosen_expert(const Choice& choice, int token, float& weight) {
  const float* logits = choice.logits + token * choice.experts;
  bool taken[kMostExperts] = {};
  for (int k = 0; k < choice.topk; ++k) {
    int best = -1;
    float best_score = 0;
    for (int e = 0; e < choice.experts; ++e) {
      float score = sigmoid(logits[e]);
      if (choice.bias != nullptr) score = __fadd_rn(score, choice.bias[e]);
      if (!taken[e] && (best < 0 || score > best_score)) {
        best = e;
        best_score = score;
      }
    }
    taken[best] = true;
  }
  float total = 0.0f;
  int seen = 0;
  int expert = 0;
  for (int e = 0; e < choice.experts; ++e) {
    if (!taken[e]) continue;
    const float score = sigmoid(logits[e]);
    total = __fadd_rn(total, score);
    if (seen == choice.rank) {
      expert = e;
      weight = score;
    }
    ++seen;
  }
  if (choice.topk > 1) weight = __fdiv_rn(weight, __fadd_rn(total, 1e-20f));
  weight = __fmul_rn(weight, choice.scaling_factor);
  return expert;
}

__global__ void plain_linear_kernel(const bf16* a, const char* weight, int rows, int k, float* y, Choice choice) {
  const int lane = threadIdx.x;
  const int token = blockIdx.y;
  if (choice.logits != nullptr) {
    float unused;
    weight += chosen_expert(choice, token, unused) * choice.stride;
  }
  const bf16* x = a + static_cast<size_t>(token) * k;
  float total[4] = {};
  for (int first = 0; first < k; first += kSegment) {
    float sum[4] = {};
    for (int at = first; at < min(k, first + kSegment); at += 16) {
      const char* tile = weight + (static_cast<size_t>(blockIdx.x) * (k / 16) + at / 16) * 512 + lane * 16;
      uint32_t b0 = 0;
      uint32_t b1 = 0;
      if (lane < 4) {
        b0 = *reinterpret_cast<const uint32_t*>(x + operand_place(at + 2 * lane));
        b1 = *reinterpret_cast<const uint32_t*>(x + operand_place(at + 8 + 2 * lane));
      }
      mma(sum, *reinterpret_cast<const uint4*>(tile), b0, b1);
    }
    for (int i = 0; i < 4; ++i) total[i] = __fadd_rn(total[i], sum[i]);
  }
  if (lane % 4 == 0) {
    y[static_cast<size_t>(token) * rows + blockIdx.x * 16 + lane / 4] = total[0];
    y[static_cast<size_t>(token) * rows + blockIdx.x * 16 + lane / 4 + 8] = total[2];
  }
}

__global__ void plain_norm_kernel(const float* x, const float* gamma, float eps, bf16* y) {
  x += static_cast<size_t>(blockIdx.x) * kHidden;
  y += static_cast<size_t>(blockIdx.x) * kHidden;
  float lanes[16];
  for (int l = 0; l < 16; ++l) {
    for (int first = 0; first < kHidden; first += kSegment) {
      float sum = 0.0f;
      for (int i = first + l; i < first + kSegment; i += 16) sum = __fmaf_rn(x[i], x[i], sum);
      lanes[l] = first == 0 ? sum : __fadd_rn(lanes[l], sum);
    }
  }
  for (int d = 8; d > 0; d /= 2) {
    for (int l = 0; l < d; ++l) lanes[l] = __fadd_rn(lanes[l], lanes[l + d]);
  }
  const float scale = __fdiv_rn(1.0f, __fsqrt_rn(__fadd_rn(__fdiv_rn(lanes[0], static_cast<float>(kHidden)), eps)));
  for (int i = 0; i < kHidden; ++i) {
    y[operand_place(i)] = __float2bfloat16_rn(__fmul_rn(__fmul_rn(x[i], scale), gamma[i]));
  }
}

__global__ void plain_round_kernel(float* x, int count) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) x[i] = round_bf16(x[i]);
}

__global__ void plain_to_bf16_kernel(const float* x, int count, bf16* y) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) y[i] = __float2bfloat16_rn(x[i]);
}

// fc1's interleaved rows to the inner vector.
__global__ void plain_activate_kernel(const float* fc1, int width, Choice choice, bf16* y) {
  const int token = blockIdx.y;
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= width) return;
  float weight = 1.0f;
  if (choice.logits != nullptr) chosen_expert(choice, token, weight);
  const float* rows = fc1 + static_cast<size_t>(token) * 2 * width + i / 8 * 16 + i % 8;
  const float inner = __fmul_rn(__fmul_rn(__fmul_rn(rows[0], sigmoid(rows[0])), rows[8]), weight);
  y[static_cast<size_t>(token) * width + operand_place(i)] = __float2bfloat16_rn(inner);
}

__global__ void plain_add_kernel(float* to, const float* x, int count) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) to[i] = __fadd_rn(to[i], x[i]);
}

// One warp a query head and token.
__global__ void plain_attention_kernel(const AttentionArgs args) {
  __shared__ bf16 query[kHeadSize];
  __shared__ float scores[kSplit];
  const int lane = threadIdx.x;
  const int head = blockIdx.x;
  const int token = blockIdx.y;
  const int group = head / args.heads_per_group;
  const int heads = args.groups * args.heads_per_group;
  const int position = args.positions[token];
  const float2* turns = args.rotary + static_cast<size_t>(position) * (kHeadSize / 2);
  const float* rows =
      args.qkv + (static_cast<size_t>(token) * args.groups + group) * (args.heads_per_group + 2) * kHeadSize;
  const float* q = rows + head % args.heads_per_group * kHeadSize;
  const float* k = rows + args.heads_per_group * kHeadSize;
  const auto at_position = [&](void* base, int at) {
    const int block = args.cache.table[token * args.cache.table_stride + at / args.cache.block_size];
    return static_cast<bf16*>(base) +
           ((static_cast<size_t>(block) * args.groups + group) * args.cache.block_size + at % args.cache.block_size) *
               kHeadSize;
  };
  for (int i = lane; i < kHeadSize / 2; i += 32) {
    const float2 t = turns[i];
    const int j = i + kHeadSize / 2;
    query[i] = __float2bfloat16_rn(__fsub_rn(__fmul_rn(q[i], t.x), __fmul_rn(q[j], t.y)));
    query[j] = __float2bfloat16_rn(__fadd_rn(__fmul_rn(q[j], t.x), __fmul_rn(q[i], t.y)));
    if (head % args.heads_per_group == 0) {
      bf16* key = at_position(args.cache.keys, position);
      bf16* value = at_position(args.cache.values, position);
      key[i] = __float2bfloat16_rn(__fsub_rn(__fmul_rn(k[i], t.x), __fmul_rn(k[j], t.y)));
      key[j] = __float2bfloat16_rn(__fadd_rn(__fmul_rn(k[j], t.x), __fmul_rn(k[i], t.y)));
      value[i] = __float2bfloat16_rn(k[kHeadSize + i]);
      value[j] = __float2bfloat16_rn(k[kHeadSize + j]);
    }
  }
  __threadfence();
  __syncwarp();
  const int g = lane / 4;
  const int c = lane % 4;
  float all_top = 0;
  float all_sum = 0;
  float all[16][2];  // (channels / 8) of columns 2 c and 2 c + 1, in lanes with g == 0
  for (int begin = 0; begin <= position; begin += kSplit) {
    const int count = min(kSplit, position + 1 - begin);
    for (int first = 0; first < count; first += 8) {
      float score[4] = {};
      for (int i = 0; i < 4; ++i) {
        const bf16* key = at_position(args.cache.keys, begin + first + g) + 32 * i + 8 * c;
        for (int half = 0; half < 2; ++half) {
          uint4 a = make_uint4(0, 0, 0, 0);
          if (g == 0) {
            a.x = *reinterpret_cast<const uint32_t*>(&query[32 * i + 8 * c + 4 * half]);
            a.z = *reinterpret_cast<const uint32_t*>(&query[32 * i + 8 * c + 4 * half + 2]);
          }
          const bool there = first + g < count;
          mma(score, a, there ? *reinterpret_cast<const uint32_t*>(key + 4 * half) : 0,
              there ? *reinterpret_cast<const uint32_t*>(key + 4 * half + 2) : 0);
        }
      }
      if (g == 0) {
        scores[first + 2 * c] = score[0];
        scores[first + 2 * c + 1] = score[1];
      }
    }
    __syncwarp();
    float top = -INFINITY;
    float sums[16][4] = {};
    float ones[4] = {};
    for (int block = 0; block < count; block += kSubsplit) {
      float larger = top;
      for (int i = block; i < min(count, block + kSubsplit); ++i) larger = fmaxf(larger, scores[i]);
      if (block > 0) {
        const float by = rescale(top, larger);
        for (auto& sum : sums) {
          sum[0] = __fmul_rn(sum[0], by);
          sum[1] = __fmul_rn(sum[1], by);
        }
        ones[0] = __fmul_rn(ones[0], by);
      }
      top = larger;
      for (int first = block; first < min(count, block + kSubsplit); first += 16) {
        uint4 high = make_uint4(0, 0, 0, 0);
        uint4 low = make_uint4(0, 0, 0, 0);
        const auto p = [&](int i) { return i < count ? probability(scores[i], top) : 0.0f; };
        if (g == 0) {
          split_probabilities(p(first + 2 * c), p(first + 2 * c + 1), high.x, low.x);
          split_probabilities(p(first + 2 * c + 8), p(first + 2 * c + 9), high.z, low.z);
        }
        const auto value = [&](int i, int channel) {
          return i < count ? at_position(args.cache.values, begin + i)[channel] : __float2bfloat16_rn(0.0f);
        };
        for (int n = 0; n < 16; ++n) {
          const uint32_t b0 = pack(value(first + 2 * c, 8 * n + g), value(first + 2 * c + 1, 8 * n + g));
          const uint32_t b1 = pack(value(first + 2 * c + 8, 8 * n + g), value(first + 2 * c + 9, 8 * n + g));
          mma(sums[n], high, b0, b1);
          mma(sums[n], low, b0, b1);
        }
        mma(ones, high, kOnes, kOnes);
        mma(ones, low, kOnes, kOnes);
      }
    }
    const float larger = begin == 0 ? top : fmaxf(all_top, top);
    const float by = begin == 0 ? 0.0f : rescale(all_top, larger);
    const float its_by = begin == 0 ? 0.0f : rescale(top, larger);
    all_sum = begin == 0 ? ones[0] : __fmaf_rn(ones[0], its_by, __fmul_rn(all_sum, by));
    for (int n = 0; n < 16; ++n) {
      for (int i = 0; i < 2; ++i) {
        all[n][i] = begin == 0 ? sums[n][i] : __fmaf_rn(sums[n][i], its_by, __fmul_rn(all[n][i], by));
      }
    }
    all_top = larger;
    __syncwarp();
  }
  if (g != 0) return;
  bf16* y = static_cast<bf16*>(args.y) + (static_cast<size_t>(token) * heads + head) * kHeadSize;
  for (int n = 0; n < 16; ++n) {
    for (int i = 0; i < 2; ++i)
      y[operand_place(8 * n + 2 * c + i)] = __float2bfloat16_rn(__fdiv_rn(all[n][i], all_sum));
  }
}

int blocks(int count) { return (count + 255) / 256; }

}  // namespace

void plain_linear(const void* a, const void* weight, int rows, int k, int tokens, float* y, cudaStream_t stream) {
  plain_linear_kernel<<<dim3(rows / 16, tokens), 32, 0, stream>>>(
      static_cast<const bf16*>(a), static_cast<const char*>(weight), rows, k, y, Choice{});
}

void plain_step(const StepArgs& args, float* scratch, cudaStream_t stream) {
  const ModelWeights& model = *args.model;
  const StepBuffers& b = args.buffers;
  const int n = args.tokens;
  const int qkv_rows = model.groups * (model.heads_per_group + 2) * kHeadSize;
  bf16* normed = reinterpret_cast<bf16*>(scratch);
  float* out = scratch + static_cast<size_t>(n) * kHidden;
  float* total = out + static_cast<size_t>(n) * kHidden;
  float* fc1 = total + static_cast<size_t>(n) * kHidden;
  for (size_t i = 0; i < model.layers.size(); ++i) {
    const LayerWeights& layer = model.layers[i];
    plain_norm_kernel<<<n, 1, 0, stream>>>(b.x, layer.attention_gamma, model.eps, normed);
    plain_linear(normed, layer.qkv, qkv_rows, kHidden, n, b.qkv, stream);
    const CacheView cache = {static_cast<char*>(args.keys) + i * args.layer_bytes,
                             static_cast<char*>(args.values) + i * args.layer_bytes, args.table, args.table_stride,
                             args.block_size};
    const AttentionArgs attention = {.qkv = b.qkv,
                                     .rotary = model.rotary,
                                     .positions = b.positions,
                                     .cache = cache,
                                     .groups = model.groups,
                                     .heads_per_group = model.heads_per_group,
                                     .tokens = n,
                                     .splits = args.splits,
                                     .y = b.attended};
    plain_attention_kernel<<<dim3(model.groups * model.heads_per_group, n), 32, 0, stream>>>(attention);
    plain_linear(b.attended, layer.projection, kHidden, kHidden, n, out, stream);
    plain_add_kernel<<<blocks(n * kHidden), 256, 0, stream>>>(b.x, out, n * kHidden);
    plain_norm_kernel<<<n, 1, 0, stream>>>(b.x, layer.mlp_gamma, model.eps, normed);
    const ExpertWeights& w = layer.experts;
    cudaMemsetAsync(total, 0, sizeof(float) * n * kHidden, stream);
    if (w.experts > 0) {
      plain_linear(normed, w.router, w.experts, kHidden, n, b.router_logits, stream);
      if (model.rounded_router) {
        plain_round_kernel<<<blocks(n * w.experts), 256, 0, stream>>>(b.router_logits, n * w.experts);
      }
      for (int k = 0; k < w.topk; ++k) {
        Choice choice = {b.router_logits, w.bias, w.experts, w.topk, k, static_cast<size_t>(w.width) * kHidden * 4,
                         w.scaling_factor};
        plain_linear_kernel<<<dim3(w.width / 8, n), 32, 0, stream>>>(normed, static_cast<const char*>(w.fc1),
                                                                     2 * w.width, kHidden, fc1, choice);
        plain_activate_kernel<<<dim3(blocks(w.width), n), 256, 0, stream>>>(fc1, w.width, choice,
                                                                            static_cast<bf16*>(b.inner));
        choice.stride /= 2;
        plain_linear_kernel<<<dim3(kHidden / 16, n), 32, 0, stream>>>(
            static_cast<const bf16*>(b.inner), static_cast<const char*>(w.fc2), kHidden, w.width, out, choice);
        plain_add_kernel<<<blocks(n * kHidden), 256, 0, stream>>>(total, out, n * kHidden);
      }
    }
    plain_linear_kernel<<<dim3(w.shared_width / 8, n), 32, 0, stream>>>(normed, static_cast<const char*>(w.shared_fc1),
                                                                        2 * w.shared_width, kHidden, fc1, Choice{});
    plain_activate_kernel<<<dim3(blocks(w.shared_width), n), 256, 0, stream>>>(fc1, w.shared_width, Choice{},
                                                                               static_cast<bf16*>(b.shared_inner));
    plain_linear(b.shared_inner, w.shared_fc2, kHidden, w.shared_width, n, out, stream);
    plain_add_kernel<<<blocks(n * kHidden), 256, 0, stream>>>(total, out, n * kHidden);
    plain_add_kernel<<<blocks(n * kHidden), 256, 0, stream>>>(b.x, total, n * kHidden);
  }
  plain_norm_kernel<<<n, 1, 0, stream>>>(b.x, model.final_gamma, model.eps, normed);
  for (int t = 0; t < n; ++t) {
    // fc1 is too small for all logits: they go where the keys of attention's splits would.
    float* logits = reinterpret_cast<float*>(b.splits);
    plain_linear(normed + static_cast<size_t>(t) * kHidden, model.output, model.vocabulary, kHidden, 1, logits, stream);
    plain_to_bf16_kernel<<<blocks(model.vocabulary), 256, 0, stream>>>(
        logits, model.vocabulary, static_cast<bf16*>(b.logits) + static_cast<size_t>(t) * model.vocabulary);
  }
}

}  // namespace assay::cuda::fast
