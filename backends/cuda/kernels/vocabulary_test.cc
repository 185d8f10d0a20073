// Rows of logits on the device against backends/reference/arithmetic/vocabulary.h, bit for bit.
#include "backends/cuda/kernels/vocabulary.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "backends/cuda/runtime/buffer.h"
#include "backends/cuda/testing/on_device.h"
#include "backends/reference/arithmetic/elementary.h"
#include "backends/reference/arithmetic/vocabulary.h"

namespace assay::cuda {
namespace {

using Floats = std::vector<float>;

class VocabularyKernel : public OnDevice {};

TEST_F(VocabularyKernel, FactsAreThoseOfTheReference) {
  for (const int vocab : {1, 290, 4096, 4097, 20001}) {
    const auto n = static_cast<size_t>(vocab);
    const std::vector<int32_t> targets{vocab / 2, -1, 0, vocab - 1};
    const size_t rows = targets.size();
    Floats logits = some_floats(rows * n, 1);
    for (float& v : logits) v = std::round(v * 40) / 2;  // many ties
    logits[2 * n + n / 3] = NAN;
    const auto device_logits = upload(logits);
    const auto device_targets = upload(targets);
    DeviceBuffer<RowFacts> facts(rows);
    DeviceBuffer<float> segments(segment_floats(static_cast<int>(rows), vocab));
    ScanArgs args{.logits = device_logits.data(), .targets = device_targets.data(), .facts = facts.data()};
    args.segments = segments.data();
    args.rows = static_cast<int>(rows);
    args.vocab = vocab;
    scan_rows(args, nullptr);
    const std::vector<RowFacts> seen = download(facts);
    Floats scratch(arithmetic::kSegment);
    for (size_t r = 0; r < rows; ++r) {
      const std::span<const float> row(&logits[r * n], n);
      std::vector<arithmetic::Segment> found;
      for (size_t begin = 0; begin < n; begin += arithmetic::kSegment) {
        found.push_back(arithmetic::scan_segment(row.subspan(begin, std::min(arithmetic::kSegment, n - begin)), begin,
                                                 scratch.data()));
      }
      const arithmetic::RowSummary expected = arithmetic::summarise(found);
      EXPECT_EQ(seen[r].argmax, expected.argmax) << vocab << ", row " << r;
      if (r == 2 && vocab == 1) continue;  // nothing but NaN
      EXPECT_EQ(seen[r].top, expected.top) << vocab << ", row " << r;
      if (targets[r] >= 0) {
        EXPECT_EQ(seen[r].target, row[static_cast<size_t>(targets[r])]) << vocab << ", row " << r;
        EXPECT_EQ(seen[r].rank, arithmetic::rank_of(row, targets[r])) << vocab << ", row " << r;
      }
      if (r == 2) continue;  // the sum is NaN
      float total = 0;
      for (const arithmetic::Segment& segment : found) {
        total = std::fma(segment.total, arithmetic::exponential<arithmetic::Single>(segment.top - expected.top), total);
      }
      EXPECT_EQ(seen[r].total, total) << vocab << ", row " << r;
    }
  }
}

}  // namespace
}  // namespace assay::cuda
