#include "core/discover/yaml_explode.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <unordered_map>
#include <utility>

namespace assay::discover {
namespace {

class Exploder {
 public:
  explicit Exploder(const YamlNode& map) : written_(map.written) {
    for (size_t i = 0; i < written_.size(); ++i) {
      const YamlWritten& one = written_[i];
      last_[0][one.entry.key] = 2 * i;
      if (!one.alias && one.entry.value->is_scalar()) last_[1][one.entry.value->text] = 2 * i + 1;
    }
  }

  std::vector<YamlEntry> explode() {
    for (size_t i = 0; i < written_.size(); ++i) {
      const YamlWritten& one = written_[i];
      if (!one.merge) {
        put(one.entry, 2 * i);
      } else if (one.entry.value->kind == YamlNode::Kind::kSequence) {
        const auto& items = one.entry.value->items;
        for (size_t k = items.size(); k-- > 0;) merge(*items[k], k);
      } else if (one.alias) {
        merge(*one.entry.value, 2 * i);
      }
    }
    return std::move(out_);
  }

 private:
  void merge(const YamlNode& map, size_t start) {
    for (const YamlEntry& entry : exploded(map)) put(entry, start);
  }

  // `start`: a position in the flat list of keys and values. A later key of this name keeps the entry back. Of a list
  // behind `<<` the position is that in the list, so that values may be taken for keys.
  void put(const YamlEntry& entry, size_t start) {
    if (const auto known = places_.find(entry.key); known != places_.end()) {
      YamlEntry& there = out_[known->second];
      there.value = entry.value;
      there.line = entry.line;
      there.column = entry.column;
      return;
    }
    const Last& last = last_[start % 2];
    if (const auto later = last.find(entry.key); later != last.end() && later->second >= start + 2) return;
    places_.emplace(entry.key, out_.size());
    out_.push_back(entry);
  }

  using Last = std::unordered_map<std::string_view, size_t>;
  const std::vector<YamlWritten>& written_;
  std::array<Last, 2> last_;  // positions of the last key, and of the last value, that reads so
  std::vector<YamlEntry> out_;
  std::unordered_map<std::string, size_t> places_;  // of keys in out_
};

}  // namespace

std::vector<YamlEntry> exploded(const YamlNode& map) {
  if (map.written.empty()) return map.entries;
  const bool merges =
      std::any_of(map.written.begin(), map.written.end(), [](const YamlWritten& one) { return one.merge; });
  if (merges) return Exploder(map).explode();
  std::vector<YamlEntry> entries;
  for (const YamlWritten& one : map.written) entries.push_back(one.entry);
  return entries;
}

}  // namespace assay::discover
