#include "core/run/partition.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <numeric>
#include <set>
#include <tuple>
#include <utility>

namespace assay::run {
namespace {

// Percent over the least time that whole groups are packed into, one try each.
constexpr std::array kTries = {0, 1, 2, 3, 5, 8, 12, 20, 35, 60, 100};

// Pieces of one group, longest first, of which some are taken.
class Remaining {
 public:
  Remaining(const Workload& work, const std::vector<uint32_t>& pieces) : work_(work), pieces_(pieces) {
    next_.resize(pieces.size() + 1);
    std::iota(next_.begin(), next_.end(), size_t{0});
    for (const uint32_t piece : pieces) time_ += work.pieces[piece].time;
  }

  int64_t time() const { return time_; }
  bool empty() const { return first(0) == pieces_.size(); }

  // Takes the longest piece that is not longer than `room`; false: there is none.
  bool take(int64_t room, uint32_t* taken) {
    const auto fits = std::partition_point(pieces_.begin(), pieces_.end(),
                                           [&](uint32_t piece) { return work_.pieces[piece].time > room; });
    const size_t at = first(static_cast<size_t>(fits - pieces_.begin()));
    if (at == pieces_.size()) return false;
    *taken = pieces_[at];
    next_[at] = at + 1;
    time_ -= work_.pieces[*taken].time;
    return true;
  }

 private:
  // The first piece from `at` on that is not taken.
  size_t first(size_t at) const {
    size_t end = at;
    while (next_[end] != end) end = next_[end];
    while (next_[at] != at) at = std::exchange(next_[at], end);
    return end;
  }

  const Workload& work_;
  const std::vector<uint32_t>& pieces_;
  mutable std::vector<size_t> next_;  // paths get shorter as they are walked
  int64_t time_ = 0;
};

struct Longer {
  const Workload& work;
  bool operator()(uint32_t a, uint32_t b) const { return work.pieces[a].time > work.pieces[b].time; }
};

class Divider {
 public:
  Divider(const Workload& work, uint32_t shares) : work_(work), shares_(shares), members_(work.loads.size()) {
    for (uint32_t i = 0; i < work.pieces.size(); ++i) members_[work.pieces[i].group].push_back(i);
    totals_ = work.loads;
    for (size_t g = 0; g < members_.size(); ++g) {
      std::stable_sort(members_[g].begin(), members_[g].end(), Longer{work_});
      for (const uint32_t piece : members_[g]) totals_[g] += work.pieces[piece].time;
    }
    order_.resize(members_.size());
    std::iota(order_.begin(), order_.end(), 0U);
    std::erase_if(order_, [&](uint32_t g) { return members_[g].empty(); });
    std::stable_sort(order_.begin(), order_.end(), [&](uint32_t a, uint32_t b) { return totals_[a] > totals_[b]; });
  }

  // Longest piece first, each to the share that is then done first.
  Partition by_pieces() {
    start();
    std::vector<uint32_t> pieces(work_.pieces.size());
    std::iota(pieces.begin(), pieces.end(), 0U);
    std::stable_sort(pieces.begin(), pieces.end(), Longer{work_});
    for (const uint32_t piece : pieces) give_to_first(piece);
    return std::move(made_);
  }

  // Whole groups, largest first, into shares of at most `limit`: to the fullest that has room. What has room nowhere is
  // split, beginning with the emptiest share. What is left then is dealt out piece by piece.
  Partition by_groups(int64_t limit) {
    start();
    for (const uint32_t group : order_) {
      const int64_t load = work_.loads[group];
      Remaining rest(work_, members_[group]);
      while (!rest.empty()) {
        const auto fits = done_.upper_bound({limit - load - rest.time(), shares_});
        if (fits != done_.begin()) {
          take_all(rest, std::prev(fits)->second);
          break;
        }
        const auto [time, share] = *done_.begin();
        uint32_t piece = 0;
        if (!rest.take(limit - time - load, &piece)) {
          while (rest.take(INT64_MAX, &piece)) give_to_first(piece);
          break;
        }
        give(piece, share);
        while (rest.take(limit - made_.time[share], &piece)) give(piece, share);
      }
    }
    return std::move(made_);
  }

 private:
  void start() {
    made_.share_of.assign(work_.pieces.size(), 0);
    made_.time.assign(shares_, 0);
    made_.loads.assign(shares_, 0);
    holders_.assign(work_.loads.size(), {});
    done_.clear();
    for (uint32_t share = 0; share < shares_; ++share) done_.emplace(0, share);
  }

  void take_all(Remaining& rest, uint32_t share) {
    uint32_t piece = 0;
    while (rest.take(INT64_MAX, &piece)) give(piece, share);
  }

  void give(uint32_t piece, uint32_t share) {
    const auto [group, time] = work_.pieces[piece];
    std::vector<uint32_t>& holders = holders_[group];
    int64_t more = time;
    if (std::find(holders.rbegin(), holders.rend(), share) == holders.rend()) {
      holders.push_back(share);
      more += work_.loads[group];
      ++made_.loads[share];
    }
    made_.share_of[piece] = share;
    done_.erase({made_.time[share], share});
    made_.time[share] += more;
    done_.emplace(made_.time[share], share);
  }

  void give_to_first(uint32_t piece) {
    const uint32_t group = work_.pieces[piece].group;
    auto [time, best] = *done_.begin();
    time += work_.loads[group];
    for (const uint32_t share : holders_[group]) {
      if (std::pair(made_.time[share], share) < std::pair(time, best)) {
        time = made_.time[share];
        best = share;
      }
    }
    give(piece, best);
  }

  const Workload& work_;
  const uint32_t shares_;
  std::vector<std::vector<uint32_t>> members_;  // (groups) pieces, longest first
  std::vector<int64_t> totals_;                 // (groups) load included
  std::vector<uint32_t> order_;                 // groups that have pieces, largest first
  Partition made_;
  std::vector<std::vector<uint32_t>> holders_;   // (groups) shares that load it
  std::set<std::pair<int64_t, uint32_t>> done_;  // time so far, share
};

}  // namespace

int64_t Partition::longest() const { return time.empty() ? 0 : *std::max_element(time.begin(), time.end()); }

uint64_t Partition::all_loads() const { return std::accumulate(loads.begin(), loads.end(), uint64_t{0}); }

int64_t least_time(const Workload& work, uint32_t shares) {
  int64_t total = 0;
  int64_t longest = 0;
  std::vector<bool> loaded(work.loads.size(), false);
  for (const auto& [group, time] : work.pieces) {
    total += time;
    longest = std::max(longest, time + work.loads[group]);
    if (!loaded[group]) total += work.loads[group];
    loaded[group] = true;
  }
  return std::max((total + shares - 1) / shares, longest);
}

Partition partition(const Workload& work, uint32_t shares) {
  assert(shares >= 1);
  const int64_t least = least_time(work, shares);
  Divider divider(work, shares);
  std::vector<Partition> tried = {divider.by_pieces()};
  for (const int percent : kTries) tried.push_back(divider.by_groups(least + least / 100 * percent));
  int64_t good = least + least / 100 * kTolerancePercent;
  int64_t best = tried.front().longest();
  for (const Partition& one : tried) best = std::min(best, one.longest());
  good = std::max(good, best);
  const auto rank = [good](const Partition& one) {
    return std::tuple(one.longest() > good, one.all_loads(), one.longest());
  };
  return *std::min_element(tried.begin(), tried.end(),
                           [&](const Partition& a, const Partition& b) { return rank(a) < rank(b); });
}

}  // namespace assay::run
