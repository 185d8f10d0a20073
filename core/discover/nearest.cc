#include "core/discover/nearest.h"

#include <algorithm>
#include <vector>

namespace assay::discover {

size_t edit_distance(std::string_view a, std::string_view b, size_t limit) {
  if (a.size() > b.size() + limit || b.size() > a.size() + limit) return limit + 1;
  std::vector<size_t> before(b.size() + 1), last(b.size() + 1), row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) last[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    size_t smallest = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, last[j - 1] + (a[i - 1] != b[j - 1])});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) row[j] = std::min(row[j], before[j - 2] + 1);
      smallest = std::min(smallest, row[j]);
    }
    if (smallest > limit) return limit + 1;
    before.swap(last);
    last.swap(row);
  }
  return std::min(last[b.size()], limit + 1);
}

std::string_view nearest_name(std::string_view name, std::span<const std::string_view> known) {
  std::string_view best;
  size_t limit = std::max<size_t>(2, name.size() / 3);
  for (const std::string_view candidate : known) {
    const size_t distance = edit_distance(name, candidate, limit);
    if (distance > limit || (!best.empty() && distance == limit)) continue;
    best = candidate;
    limit = distance;
    if (limit == 0) break;
  }
  return best;
}

std::string did_you_mean(std::string_view name, std::span<const std::string_view> known) {
  const std::string_view best = nearest_name(name, known);
  return best.empty() ? std::string() : " (did you mean '" + std::string(best) + "'?)";
}

}  // namespace assay::discover
