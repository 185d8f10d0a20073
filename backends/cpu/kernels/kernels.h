// The kernels of the CPU backend: one table an instruction set, all with the same bits (arithmetic/dot.h and its
// neighbours define them). Every kernel is single-threaded and re-entrant; callers split the work by output elements.
// What each of them promises and costs: kernel_info.h. A new one gets an entry there and a probe in kernel_probes.cc.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "assay/status.h"

namespace assay::cpu {

enum class Number : uint8_t { kFloat32, kBfloat16, kFloat16 };  // stored form of weights and KV
inline constexpr size_t kNumbers = 3;
inline size_t number_size(Number number) { return number == Number::kFloat32 ? 4 : 2; }

enum class Gate : uint8_t { kSwiglu, kSquaredRelu, kGeluErf, kGeluTanh };

inline constexpr size_t kPackTokens = 4;     // tokens of one tile of packed inputs
inline constexpr size_t kPackColumns = 256;  // columns of one tile, a block of the dot
inline constexpr size_t kPackFrom = 16;      // tokens from which packed inputs pay

// Floats of `tokens` packed inputs: (tiles of tokens, blocks of columns, kPackTokens, kPackColumns).
inline size_t packed_size(size_t tokens, size_t cols) {
  const size_t tiles = (tokens + kPackTokens - 1) / kPackTokens;
  return tiles * ((cols + kPackColumns - 1) / kPackColumns) * kPackTokens * kPackColumns;
}

// Packs the tiles [begin, end) of tokens; missing tokens and columns become zeros.
struct PackArgs {
  const float* const* x = nullptr;  // (tokens) of (cols)
  size_t tokens = 0;
  size_t cols = 0;
  size_t begin = 0;
  size_t end = 0;
  float* packed = nullptr;  // of all tiles
};

// y[t][r] = dot(weight row r, x[t]) for r in [begin, end); 2*(end-begin)*cols*tokens flops. Moves the weights, that is
// (end-begin)*cols*number_size bytes, once, or once per 256 tokens where the inputs are packed.
struct MatmulArgs {
  const void* weight = nullptr;  // (rows, cols), row-major, 64-byte aligned base
  size_t cols = 0;
  size_t begin = 0;
  size_t end = 0;
  const float* const* x = nullptr;  // (tokens) of (cols)
  float* const* y = nullptr;        // (tokens): element r - y_offset is written
  size_t y_offset = 0;
  size_t tokens = 0;
  const float* packed = nullptr;  // all of x as pack() leaves it, then x is not read; or null
};

// RMSNorm or LayerNorm of one vector.
struct NormArgs {
  const float* x = nullptr;      // (count)
  const float* gamma = nullptr;  // (count)
  const float* beta = nullptr;   // (count) or null
  float* y = nullptr;            // (count), may be x
  size_t count = 0;
  float epsilon = 0;
  bool centred = false;  // LayerNorm
  bool rounded = false;  // to bf16
};

struct ActivateArgs {
  Gate gate = Gate::kSwiglu;
  const float* first = nullptr;  // (count) gate or only half
  const float* up = nullptr;     // (count) for kSwiglu
  float* y = nullptr;            // (count)
  size_t count = 0;
  float factor = 1;
  bool rounded = false;
};

// One split of up to 256 positions for queries that share keys and values, each over its own first positions.
struct AttendArgs {
  const float* const* query = nullptr;  // (queries) of (channels)
  const size_t* counts = nullptr;       // (queries) positions seen, 1 .. 256
  size_t queries = 0;
  const void* const* keys = nullptr;    // (largest count) of (channels)
  const void* const* values = nullptr;  // (largest count) of (channels)
  size_t channels = 0;
  float scale = 1;
  float* const* result = nullptr;  // (queries) of: weighted (channels), maximum, total
};

// Puts the splits of one head together. Strides in floats from one split to the next.
struct CombineArgs {
  const float* top = nullptr;
  const float* total = nullptr;
  const float* weighted = nullptr;  // (channels)
  size_t splits = 0;
  size_t scalar_stride = 0;
  size_t weighted_stride = 0;
  size_t channels = 0;
  bool rounded = false;
  float* y = nullptr;  // (channels)
};

struct SegmentResult {
  float top;
  float total;
  size_t argmax;  // within the segment
};

struct Kernels {
  std::string_view name;
  void (*matmul[kNumbers])(const MatmulArgs& args);
  void (*pack)(const PackArgs& args);
  void (*normalise)(const NormArgs& args);
  void (*activate)(const ActivateArgs& args);
  void (*attend[kNumbers])(const AttendArgs& args);
  void (*combine)(const CombineArgs& args);
  // y = y + x; with a factor, y = y + x * factor (the product rounded first).
  void (*add)(const float* x, float* y, size_t count);
  void (*add_scaled)(const float* x, float factor, float* y, size_t count);
  void (*round)(float* y, size_t count);  // to bf16, kept as float
  // Rotates the leading 2 * half elements of one head (reference operators.h).
  void (*rotate)(float* head, const float* cosine, const float* sine, size_t half, bool interleaved);
  void (*widen[kNumbers])(const void* x, float* y, size_t count);
  void (*narrow_bf16)(const float* x, uint16_t* y, size_t count);  // rounds
  SegmentResult (*scan_segment)(const float* logits, size_t count);
};

// Names of the instruction sets that this build holds, best first ("avx512", "avx2", "scalar"), and whether this
// processor and operating system can run one.
std::vector<std::string_view> built_isas();
bool can_run(std::string_view isa);

// "auto": the best that can run. kInvalid for an unknown name, kUnsupported when the processor lacks it.
Result<const Kernels*> select_kernels(std::string_view isa);

}  // namespace assay::cpu
