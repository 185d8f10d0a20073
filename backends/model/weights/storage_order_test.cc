#include "backends/model/weights/storage_order.h"

#include <gmock/gmock.h>

namespace assay::model {
namespace {

using ::testing::Pair;

// Two experts of four rows of three columns in layers 0 and 1: a chunk for each half of an expert, the last one first
// in file 0, the others in file 1; behind them `v`, cut along its columns.
CheckpointContents contents() {
  CheckpointContents contents;
  TensorInfo v;
  v.key = "v";
  v.shape = {4, 6};
  for (int64_t part = 0; part < 2; ++part) {
    v.chunks.push_back({{0, 3 * part}, {4, 3}});
    v.places.push_back({2, static_cast<uint64_t>(100 * part), 100});
  }
  TensorInfo w;
  w.key = "w";
  w.shape = {2, 2, 4, 3};
  for (int64_t chunk = 0; chunk < 8; ++chunk) {
    w.chunks.push_back({{chunk / 4, chunk / 2 % 2, chunk % 2 * 2, 0}, {1, 1, 2, 3}});
    w.places.push_back({chunk == 7 ? 0U : 1U, static_cast<uint64_t>(10 * chunk), 10});
  }
  contents.tensors = {v, w};
  return contents;
}

WeightRef expert(int64_t layer, int64_t index) { return {{{"w", {layer, index}, 4}}, 4, 3, Dtype::kBfloat16}; }

TEST(StorageOrder, ARowLiesInTheChunkThatHoldsIt) {
  const CheckpointContents stored = contents();
  StorageOrder order(stored);
  EXPECT_THAT(order.place(expert(0, 0), 0), Pair(1, 0));
  EXPECT_THAT(order.place(expert(0, 0), 1), Pair(1, 0));
  EXPECT_THAT(order.place(expert(0, 0), 2), Pair(1, 10));
  EXPECT_THAT(order.place(expert(1, 0), 3), Pair(1, 50));
  EXPECT_THAT(order.place(expert(1, 1), 3), Pair(0, 70));
}

TEST(StorageOrder, LaterPiecesAndRowsWithoutAPieceAreFoundToo) {
  const CheckpointContents stored = contents();
  StorageOrder order(stored);
  const WeightRef halves{{{"w", {0, 0}, 4}, {"v", {}, 4}}, 9, 3, Dtype::kBfloat16};
  EXPECT_THAT(order.place(halves, 3), Pair(1, 10));
  EXPECT_THAT(order.place(halves, 4), Pair(2, 0));
  EXPECT_THAT(order.place(halves, 7), Pair(2, 100));
  EXPECT_THAT(order.place(halves, 8), Pair(0, 0));  // padding
}

}  // namespace
}  // namespace assay::model
