// What the fast path is built for; other models take the generic kernels.
#pragma once

namespace assay::cuda::fast {

constexpr int kWarps = 8;  // of every block that streams weights
constexpr int kThreads = kWarps * 32;
constexpr int kSegment = 256;               // of K: what one chain of mma's sums
constexpr int kHidden = kWarps * kSegment;  // hidden size; a warp has one segment of every row tile
constexpr int kHeadSize = 128;
constexpr int kMostExperts = 64;
constexpr int kMostTopk = 8;
constexpr int kMostHeadsPerGroup = 8;
constexpr int kMostTokens = 8;  // of a decode step

}  // namespace assay::cuda::fast
