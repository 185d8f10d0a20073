// How runs are cut into slices; these need no device.
#include "backends/cuda/slices.h"

#include <gtest/gtest.h>

#include <string>

namespace assay::cuda {
namespace {

// Slices of runs of so many tokens: "fast[0: 0+64] [1: 0+3, 2: 0+1]" names run, first token and count of every piece.
std::string slices_of(const std::vector<uint32_t>& counts, uint32_t most_tokens, uint32_t least_fast) {
  std::vector<assay_run> runs;
  for (const uint32_t count : counts) {
    assay_run run{};
    run.count = count;
    runs.push_back(run);
  }
  std::string text;
  for (const Slice& slice : cut_slices(runs, most_tokens, least_fast)) {
    text += std::string(text.empty() ? "" : " ") + (slice.fast ? "fast[" : "[");
    for (const Piece& piece : slice.pieces) {
      if (text.back() != '[') text += ", ";
      text += std::to_string(piece.run - runs.data()) + ": " + std::to_string(piece.begin) + "+" +
              std::to_string(piece.count);
    }
    text += "]";
  }
  return text;
}

TEST(Slices, AreFilledInTheOrderOfTheRuns) {
  EXPECT_EQ(slices_of({3, 5, 1}, 4, 0), "[0: 0+3, 1: 0+1] [1: 1+4] [2: 0+1]");
  EXPECT_EQ(slices_of({9}, 4, 0), "[0: 0+4] [0: 4+4] [0: 8+1]");
  EXPECT_EQ(slices_of({1, 1, 1, 1}, 4, 0), "[0: 0+1, 1: 0+1, 2: 0+1, 3: 0+1]");
  EXPECT_EQ(slices_of({}, 4, 0), "");
}

TEST(Slices, KeepLongRunsApartFromShortOnes) {
  EXPECT_EQ(slices_of({1, 1, 64, 1, 100}, 1024, 64), "[0: 0+1, 1: 0+1] fast[2: 0+64] [3: 0+1] fast[4: 0+100]");
  EXPECT_EQ(slices_of({63, 64, 70}, 1024, 64), "[0: 0+63] fast[1: 0+64, 2: 0+70]");
}

TEST(Slices, CutALongRunByItsOwnLengthAlone) {
  EXPECT_EQ(slices_of({250}, 100, 64), "fast[0: 0+100] fast[0: 100+100] fast[0: 200+50]");
  EXPECT_EQ(slices_of({70, 250, 50}, 100, 64),
            "fast[0: 0+70] fast[1: 0+100] fast[1: 100+100] fast[1: 200+50] [2: 0+50]");
  EXPECT_EQ(slices_of({240, 64, 70}, 100, 64),
            "fast[0: 0+100] fast[0: 100+100] fast[0: 200+40] fast[1: 0+64] fast[2: 0+70]");
  EXPECT_EQ(slices_of({230, 65}, 100, 64), "fast[0: 0+100] fast[0: 100+100] fast[0: 200+30, 1: 0+65]");
}

TEST(Slices, OfOneTokenAreAllowed) {
  EXPECT_EQ(slices_of({2, 1}, 1, 0), "[0: 0+1] [0: 1+1] [1: 0+1]");
  EXPECT_EQ(slices_of({2, 1}, 1, 2), "fast[0: 0+1] fast[0: 1+1] [1: 0+1]");
}

}  // namespace
}  // namespace assay::cuda
