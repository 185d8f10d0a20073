#include "core/discover/yaml_explode.h"

#include <gtest/gtest.h>

#include <ctime>
#include <random>

namespace assay::discover {
namespace {

// What exploded() makes of a mapping with `<<`, with a search for every question.
class Searched {
 public:
  explicit Searched(const std::vector<YamlWritten>& written) : written_(written) {}

  std::vector<YamlEntry> entries() {
    for (size_t i = 0; i < written_.size(); ++i) {
      const YamlWritten& one = written_[i];
      const auto& items = one.entry.value->items;
      if (!one.merge) put(one.entry, 2 * i);
      for (size_t k = items.size(); one.merge && k-- > 0;) {
        for (const YamlEntry& entry : items[k]->entries) put(entry, k);
      }
      if (one.merge && one.alias) {
        for (const YamlEntry& entry : one.entry.value->entries) put(entry, 2 * i);
      }
    }
    return out_;
  }

 private:
  void put(const YamlEntry& entry, size_t start) {
    for (YamlEntry& known : out_) {
      if (known.key != entry.key) continue;
      known.value = entry.value;
      return;
    }
    for (size_t at = start + 2; at < 2 * written_.size(); at += 2) {
      const YamlWritten& later = written_[at / 2];
      const YamlNode& value = *later.entry.value;
      if (at % 2 == 0 && later.entry.key == entry.key) return;
      if (at % 2 == 1 && !later.alias && value.is_scalar() && value.text == entry.key) return;
    }
    out_.push_back(entry);
  }

  const std::vector<YamlWritten>& written_;
  std::vector<YamlEntry> out_;
};

std::string as_line(const std::vector<YamlEntry>& entries) {
  std::string line;
  for (const YamlEntry& entry : entries) line += entry.key + "=" + entry.value->text + " ";
  return line;
}

TEST(YamlExplode, KeepsTheEntriesThatASearchOfAllOthersKeeps) {
  std::mt19937 random(3);
  const auto letter = [&random] { return std::string(1, static_cast<char>('a' + random() % 5)); };
  size_t merges = 0;
  for (int i = 0; i < 2000; ++i) {
    std::string text = "x: &x {a: 1, b: 2, c: a}\ny: &y {b: 3, d: 4}\nz: &z q\nm:\n";
    for (size_t k = 0; k < 1 + random() % 7; ++k) {
      switch (random() % 6) {
        case 0:
          text += "  <<: *x\n";
          break;
        case 1:
          text += "  <<: [*y, *x]\n";
          break;
        case 2:
          text += "  " + letter() + ": *z\n";
          break;
        default:
          text += "  " + letter() + ": " + letter() + "\n";
      }
    }
    const Result<YamlTree> tree = parse_yaml(text, "f");
    ASSERT_TRUE(tree.ok()) << tree.status().message();
    const YamlNode& map = *tree->root->find("m");
    if (text.find("  <<") == std::string::npos) continue;
    ++merges;
    EXPECT_EQ(as_line(exploded(map)), as_line(Searched(map.written).entries())) << text;
  }
  EXPECT_GT(merges, 500U);
}

// Seconds of this process for one mapping of `keys` keys with a `<<` before them, the best of three.
double seconds_for(int keys) {
  std::string text = "x: &x {a: 1}\nm:\n  <<: *x\n";
  for (int i = 0; i < keys; ++i) text += "  --k" + std::to_string(i) + ": 1\n";
  const Result<YamlTree> tree = parse_yaml(text, "f");
  EXPECT_TRUE(tree.ok()) << tree.status().message();
  double best = 1e9;
  for (int i = 0; i < 3; ++i) {
    const std::clock_t begin = std::clock();
    EXPECT_EQ(exploded(*tree->root->find("m")).size(), static_cast<size_t>(keys) + 1);
    best = std::min(best, static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC);
  }
  return best;
}

TEST(YamlExplode, TwentyTimesTheKeysDoNotTakeFourHundredTimesTheTime) {
  EXPECT_LT(seconds_for(40000), 100 * std::max(seconds_for(2000), 1e-4));
}

}  // namespace
}  // namespace assay::discover
