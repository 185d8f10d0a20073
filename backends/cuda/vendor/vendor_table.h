// What the shared objects around NVIDIA's libraries show: each exports one C function that gives a table of functions.
// The backend opens the objects at run time, so that it loads on machines that have none of those libraries.
//
// No exception and no type of the C++ library crosses. Functions return 0, or 1 with a line in `why`; `why` is the
// caller's. One thread at a time a handle. Device pointers are the caller's; work goes to the given stream,
// asynchronously, on the calling thread's device.
#pragma once

#include <driver_types.h>

#include <cstdint>

namespace assay::cuda::vendor {

inline constexpr uint32_t kTableVersion = 1;  // of this header; both sides are of one build
inline constexpr char kQuery[] = "assay_vendor_query";

struct Text {
  char line[256] = "";
};

struct TableHead {
  uint32_t version = kTableVersion;
  const char* library = "";        // "cuBLASLt"
  uint64_t (*loaded)() = nullptr;  // version of the library that is loaded: major * 10000 + minor * 100 + patch
};
using Query = const TableHead* (*)();  // the type of the exported function; the head begins the object's own table

// y[t] = weight x[t]: weight (rows, cols) bf16, row-major, `cols` apart; x (tokens, cols) bf16, `x_stride` apart;
// y (tokens, rows) fp32, `y_stride` apart; fp32 accumulation. cols and strides of bf16: multiples of 8; rows and
// y_stride: multiples of 4.
struct GemmShape {
  int32_t rows = 0;
  int32_t cols = 0;
  int32_t tokens = 0;
  int32_t x_stride = 0;
  int32_t y_stride = 0;
};

// One way to compute a shape. K is never split between blocks: no partial sums meet in memory.
struct GemmChoice {
  uint64_t algorithm[8] = {};  // the library's own
  char name[64] = "";          // for people: algorithm, tile, stages, cluster and custom option by number
};

struct GemmCall {
  GemmShape shape = {};
  const GemmChoice* choice = nullptr;
  const void* weight = nullptr;
  const void* x = nullptr;
  float* y = nullptr;
  int32_t onto = 0;  // 1: y = y + the product
  void* workspace = nullptr;
  uint64_t workspace_bytes = 0;
  cudaStream_t stream = nullptr;
};

struct GemmTable {
  TableHead head = {};
  int32_t (*open)(void** handle, Text* why) = nullptr;
  void (*close)(void* handle) = nullptr;
  // Up to `most` ways, the one that the library thinks fastest first, each in at most `workspace` bytes. 0 of them: the
  // library has none.
  int32_t (*choose)(void* handle, const GemmShape* shape, uint64_t workspace, int32_t most, GemmChoice* choices,
                    int32_t* count, Text* why) = nullptr;
  // 1: `choice` can compute `shape` in `workspace` bytes.
  int32_t (*fits)(void* handle, const GemmShape* shape, const GemmChoice* choice, uint64_t workspace) = nullptr;
  int32_t (*run)(void* handle, const GemmCall* call, Text* why) = nullptr;
};

// Causal attention of one sequence: query i sees keys 0 .. keys - queries + i. bf16, softmax in fp32.
// q and o: (queries, heads, channels); k and v: (groups, keys, channels). heads: a multiple of groups.
struct AttentionShape {
  int32_t heads = 0;
  int32_t groups = 0;
  int32_t channels = 0;
  int32_t queries = 0;
  int32_t keys = 0;
};

struct AttentionCall {
  const void* q = nullptr;
  const void* k = nullptr;
  const void* v = nullptr;
  void* o = nullptr;
  float scale = 1;  // of the scores
  void* workspace = nullptr;
  cudaStream_t stream = nullptr;
};

struct AttentionTable {
  TableHead head = {};
  int32_t (*open)(void** handle, Text* why) = nullptr;
  void (*close)(void* handle) = nullptr;
  // A plan for one shape and the bytes of workspace that it needs; takes milliseconds to seconds. `name`: the engine.
  int32_t (*plan)(void* handle, const AttentionShape* shape, void** plan, uint64_t* workspace, Text* name,
                  Text* why) = nullptr;
  void (*drop)(void* plan) = nullptr;
  int32_t (*run)(void* handle, void* plan, const AttentionCall* call, Text* why) = nullptr;
};

}  // namespace assay::cuda::vendor
