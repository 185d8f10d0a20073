// Deals cases out to equal workers so that all of them end at about the same time and what shares a load stays
// together. Pure, and in integers alone: the result is the same on every machine.
#pragma once

#include <cstdint>
#include <vector>

namespace assay::run {

// Times are microseconds, at least 0; the sum of all of them, loads included, stays below 2^60.
struct Workload {
  struct Piece {
    uint32_t group = 0;  // index of `loads`
    int64_t time = 0;
  };
  std::vector<Piece> pieces;   // that cannot be divided: cases
  std::vector<int64_t> loads;  // (groups) paid once by each share that has a piece of the group
};

struct Partition {
  std::vector<uint32_t> share_of;  // (pieces) from 0
  std::vector<int64_t> time;       // (shares) loads included
  std::vector<uint32_t> loads;     // (shares) groups that it has pieces of

  int64_t longest() const;
  uint64_t all_loads() const;
};

// Work that no partition can do in less than this: the larger of the mean share with each group loaded once, and the
// longest piece with its load.
int64_t least_time(const Workload& work, uint32_t shares);

// How much longer than that the longest share may be where it saves loads.
inline constexpr int kTolerancePercent = 5;

// Divides `work` into `shares` (at least 1) shares, each piece in exactly one. A group is kept whole where that leaves
// the longest share within kTolerancePercent of least_time(), or no longer than any other way tried; else it is split
// over as few shares as that takes. The longest share is at most the longer of 1 + kTolerancePercent / 100 of
// least_time(), within which fewer loads win over a shorter share, and of what "longest piece first, to the share that
// is done first" (LPT) comes to, which without loads is at most 4/3 of the best possible.
Partition partition(const Workload& work, uint32_t shares);

}  // namespace assay::run
