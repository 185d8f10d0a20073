#include "core/discover/yaml_explode.h"

#include <algorithm>

namespace assay::discover {
namespace {

class Exploder {
 public:
  explicit Exploder(const YamlNode& map) : written_(map.written) {}

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
    for (YamlEntry& known : out_) {
      if (known.key != entry.key) continue;
      known.value = entry.value;
      known.line = entry.line;
      known.column = entry.column;
      return;
    }
    for (size_t at = start + 2; at < 2 * written_.size(); at += 2) {
      const YamlWritten& later = written_[at / 2];
      const bool same = at % 2 == 0
                            ? later.entry.key == entry.key
                            : !later.alias && later.entry.value->is_scalar() && later.entry.value->text == entry.key;
      if (same) return;
    }
    out_.push_back(entry);
  }

  const std::vector<YamlWritten>& written_;
  std::vector<YamlEntry> out_;
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
