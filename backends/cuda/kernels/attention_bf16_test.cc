// Attention in bf16 models: every version, however tokens are put together and wherever they lie in the cache, gives a
// token the same bits; and they are near the reference's.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "backends/cuda/kernels/attend_any.h"
#include "backends/cuda/runtime/buffer.h"
#include "backends/cuda/testing/on_device.h"
#include "backends/reference/arithmetic/formats.h"
#include "backends/reference/operators.h"

namespace assay::cuda {
namespace {

using Bits = std::vector<uint16_t>;

constexpr uint16_t kNaN = 0x7fc0;
constexpr float kInfinity = std::numeric_limits<float>::infinity();

struct Shape {
  int channels;
  int groups;
  int per_group;
  int block_size;
};

// Tokens start .. start + count - 1 of a sequence.
struct Run {
  int sequence;
  int start;
  int count;
};

// What all sequences are made of: a number depends on where it belongs alone, never on the pass.
struct Content {
  Shape s;
  std::pair<int, int> infinite_value = {-1, -1};  // of this sequence, at this position

  static float number(std::initializer_list<int> place) {
    uint32_t h = 2166136261u;
    for (const int p : place) h = (h ^ static_cast<uint32_t>(p)) * 16777619u ^ h >> 15;
    h = (h ^ h >> 13) * 0x5bd1e995u;
    const float wide = static_cast<float>(static_cast<int32_t>(h >> 8) - (1 << 23)) * 0x1p-23f;
    return arithmetic::round_bf16(h % 5 == 0 ? wide * 4 : wide);
  }
  float query(int sequence, int position, int head, int c) const { return number({1, sequence, position, head, c}); }
  float key(int sequence, int position, int group, int c) const { return number({2, sequence, position, group, c}); }
  float value(int sequence, int position, int group, int c) const {
    if (std::pair{sequence, position} == infinite_value && c % 3 == 0) return kInfinity;
    return number({3, sequence, position, group, c});
  }
};

using Version = void (*)(const AttendArgs&, cudaStream_t);
using Results = std::map<std::pair<int, int>, Bits>;  // by sequence and position: (heads * channels)

// One pass of some tokens. All that is in the cache beside their sequences up to the last of them is NaN.
class Pass {
 public:
  Pass(const Content& content, std::vector<Run> runs) : content_(content), s_(content.s), runs_(std::move(runs)) {
    for (const Run& run : runs_) {
      int& length = lengths_[run.sequence];
      length = std::max(length, run.start + run.count);
    }
    for (const auto& [sequence, length] : lengths_) {
      for (int i = 0; i * s_.block_size < length; ++i) tables_[sequence].push_back(blocks_++);
    }
    for (auto& [sequence, table] : tables_) {  // descending, and one block in between
      for (int& block : table) block = 2 * (blocks_ - 1 - block);
    }
    blocks_ *= 2;
    fill();
  }

  // In bundles of up to `bundle` tokens; 0: without bundles.
  Results attend(Version version, int bundle) const {
    std::vector<int32_t> positions;
    std::vector<int32_t> tables;
    std::vector<int32_t> bundles;
    std::vector<int32_t> blocks;
    Bits queries;
    AttendArgs args;
    for (const Run& run : runs_) {
      for (int i = 0; i < run.count; ++i) {
        if (bundle > 0 && i % bundle == 0) {
          bundles.insert(bundles.end(), {static_cast<int32_t>(positions.size()), std::min(bundle, run.count - i)});
        }
        positions.push_back(run.start + i);
        tables.push_back(static_cast<int32_t>(blocks.size()));
        for (int h = 0; h < heads(); ++h) {
          for (int c = 0; c < s_.channels; ++c) {
            queries.push_back(arithmetic::to_bf16(content_.query(run.sequence, run.start + i, h, c)));
          }
        }
      }
      const auto& table = tables_.at(run.sequence);
      blocks.insert(blocks.end(), table.begin(), table.end());
      args.tokens.longest = std::max(args.tokens.longest, run.start + run.count);
    }
    const auto device_positions = upload(positions);
    const auto device_tables = upload(tables);
    const auto device_bundles = upload(bundle > 0 ? bundles : std::vector<int32_t>{0});
    const auto device_blocks = upload(blocks);
    const auto device_queries = upload(queries);
    args.queries = device_queries.data();
    args.cache = {keys_.data(), values_.data(), true, s_.groups, s_.channels, s_.block_size, blocks_};
    args.tokens.count = static_cast<int>(positions.size());
    args.tokens.position = device_positions.data();
    args.tokens.table = device_tables.data();
    args.tokens.blocks = device_blocks.data();
    if (bundle > 0) {
      args.tokens.bundles = device_bundles.data();
      args.tokens.bundle_count = static_cast<int>(bundles.size() / 2);
    }
    args.layer = 1;
    args.per_group = s_.per_group;
    args.scale = 1.0f / std::sqrt(static_cast<float>(s_.channels));
    const DeviceBuffer<float> splits(split_floats(args.tokens.count, heads(), s_.channels, args.tokens.longest));
    args.splits = splits.data();
    const int width = heads() * s_.channels;
    const int stride = round_up(width, kTile);
    const auto y = upload(Bits(positions.size() * static_cast<size_t>(stride), kNaN));
    args.y = {y.data(), stride, true};
    version(args, nullptr);
    const Bits all = download(y);
    Results results;
    auto row = all.begin();
    for (const Run& run : runs_) {
      for (int i = 0; i < run.count; ++i, row += stride) {
        results[{run.sequence, run.start + i}] = Bits(row, row + width);
        EXPECT_EQ(std::count(row + width, row + stride, 0), stride - width) << "padding";
      }
    }
    return results;
  }

 private:
  int heads() const { return s_.groups * s_.per_group; }

  void fill() {
    const size_t size = size_t{2} * static_cast<size_t>(blocks_ * s_.groups * s_.block_size * s_.channels);
    Bits keys(size, kNaN);
    Bits values(size, kNaN);
    for (const auto& [sequence, length] : lengths_) {
      for (int p = 0; p < length; ++p) {
        const int block = tables_[sequence][static_cast<size_t>(p / s_.block_size)];
        for (int g = 0; g < s_.groups; ++g) {
          const int row = ((blocks_ + block) * s_.groups + g) * s_.block_size + p % s_.block_size;
          for (int c = 0; c < s_.channels; ++c) {
            const size_t at = static_cast<size_t>(row) * static_cast<size_t>(s_.channels) + static_cast<size_t>(c);
            keys[at] = arithmetic::to_bf16(content_.key(sequence, p, g, c));
            values[at] = arithmetic::to_bf16(content_.value(sequence, p, g, c));
          }
        }
      }
    }
    keys_ = upload(keys);
    values_ = upload(values);
  }

  Content content_;
  Shape s_;
  std::vector<Run> runs_;
  std::map<int, int> lengths_;                  // positions of a sequence in the cache
  std::map<int, std::vector<int32_t>> tables_;  // blocks of a sequence
  int blocks_ = 0;
  DeviceBuffer<uint16_t> keys_;
  DeviceBuffer<uint16_t> values_;
};

// What `seen` has of `wanted`, bit for bit.
::testing::AssertionResult agree(const Results& seen, const Results& wanted) {
  for (const auto& [where, bits] : wanted) {
    const auto found = seen.find(where);
    if (found == seen.end()) continue;
    if (const auto same = same_bits(found->second, bits); !same) {
      return ::testing::AssertionFailure()
             << "sequence " << where.first << ", position " << where.second << ": " << same.message();
    }
  }
  return ::testing::AssertionSuccess();
}

constexpr int kPositions[] = {0, 1, 14, 15, 16, 63, 64, 65, 100, 127, 128, 255, 256, 257, 300, 511, 512, 513};

// The last two: so many heads that prompts are taken 128 tokens at a time, not 64 (attend_hopper.cu).
const Shape kShapes[] = {{16, 2, 1, 16},  {40, 1, 3, 16},  {64, 2, 2, 16},   {96, 1, 2, 16},  {128, 2, 1, 16},
                         {128, 1, 3, 16}, {128, 1, 8, 16}, {192, 1, 1, 16},  {256, 1, 2, 16}, {64, 1, 12, 16},
                         {20, 1, 20, 16}, {300, 1, 1, 16}, {128, 27, 1, 16}, {64, 9, 3, 16}};

std::string name(const Shape& s) {
  return std::to_string(s.channels) + " channels, " + std::to_string(s.per_group) + " heads a group, blocks of " +
         std::to_string(s.block_size);
}

// Every token of some positions by itself, in a cache that holds nothing else.
Results alone(const Content& content, int sequence = 0) {
  Results results;
  for (const int p : kPositions) results.merge(Pass(content, {{sequence, p, 1}}).attend(attend, 0));
  return results;
}

class AttentionBf16 : public OnDevice {};

TEST_F(AttentionBf16, ATokenHasTheSameBitsInBundlesChunksAndBlocksOfAnySize) {
  for (const Shape& shape : kShapes) {
    const Results expected = alone({shape});
    for (const int block_size : {1, 16, 17, 64}) {
      Shape s = shape;
      s.block_size = block_size;
      const Pass whole(Content{s}, {{0, 0, 514}});
      for (const Version version : {attend, attend_any}) {
        for (const int bundle : {0, 1, 7, 65, kBundle}) {
          EXPECT_TRUE(agree(whole.attend(version, bundle), expected)) << name(s) << ", bundles of " << bundle;
        }
      }
      const Pass chunks(Content{s}, {{0, 0, 2}, {0, 14, 3}, {0, 60, 41}, {0, 127, 2}, {0, 255, 3}, {0, 300, 214}});
      EXPECT_TRUE(agree(chunks.attend(attend_any, kBundle), expected)) << name(s);
    }
  }
}

TEST_F(AttentionBf16, NeighboursDoNotChangeABit) {
  for (const Shape& s : kShapes) {
    Results expected = alone({s});
    expected.merge(alone({s}, 5));
    for (const Version version : {attend, attend_any}) {
      const Pass tokens(Content{s}, {{5, 63, 1},
                                     {0, 256, 1},
                                     {5, 513, 1},
                                     {0, 0, 1},
                                     {0, 513, 1},
                                     {5, 64, 1},
                                     {7, 99, 1},
                                     {5, 300, 1},
                                     {0, 15, 1},
                                     {5, 255, 1},
                                     {0, 100, 1}});
      EXPECT_TRUE(agree(tokens.attend(version, kBundle), expected)) << name(s);
      const Pass early(Content{s}, {{5, 63, 1}, {0, 0, 1}, {0, 127, 1}, {5, 100, 1}, {0, 64, 1}, {5, 15, 1}});
      EXPECT_TRUE(agree(early.attend(version, kBundle), expected)) << name(s);
      const Pass mixed(Content{s}, {{5, 63, 70}, {0, 256, 1}, {5, 500, 14}, {7, 0, 300}, {0, 513, 1}, {0, 16, 50}});
      EXPECT_TRUE(agree(mixed.attend(version, kBundle), expected)) << name(s);
    }
  }
}

// A token after another one does not exist for it, whatever its values are.
TEST_F(AttentionBf16, InfiniteValuesOfLaterTokensDoNotReachEarlierOnes) {
  for (const Shape& s : kShapes) {
    const Results expected = alone({s});
    for (const int where : {1, 64, 300}) {
      Content content{s};
      content.infinite_value = {0, where};
      for (const Version version : {attend, attend_any}) {
        Results seen = Pass(content, {{0, 0, 514}}).attend(version, kBundle);
        const Bits& hit = seen.at({0, where});
        EXPECT_TRUE(std::any_of(hit.begin(), hit.end(), [](uint16_t b) { return (b & 0x7f80) == 0x7f80; }));
        std::erase_if(seen, [&](const auto& result) { return result.first.second >= where; });
        EXPECT_TRUE(agree(seen, expected)) << name(s) << ", position " << where;
      }
    }
  }
}

// Tolerance: a rounding to bf16 of the result (2^-8 of it at most), and 2^-12 for weights that were kept as two bf16.
TEST_F(AttentionBf16, ResultsAreNearTheReference) {
  for (const Shape& s : kShapes) {
    const Content content{s};
    double largest = 0;
    for (const auto& [where, bits] : alone(content)) {
      for (int head = 0; head < std::min(s.groups * s.per_group, 4); ++head) {
        std::vector<std::vector<float>> keys;
        std::vector<std::vector<float>> values;
        std::vector<float> query(static_cast<size_t>(s.channels));
        for (int c = 0; c < s.channels; ++c) {
          query[static_cast<size_t>(c)] = content.query(0, where.second, head, c);
        }
        for (int p = 0; p <= where.second; ++p) {
          keys.emplace_back();
          values.emplace_back();
          for (int c = 0; c < s.channels; ++c) {
            keys.back().push_back(content.key(0, p, head / s.per_group, c));
            values.back().push_back(content.value(0, p, head / s.per_group, c));
          }
        }
        const float scale = 1.0f / std::sqrt(static_cast<float>(s.channels));
        const auto wanted = reference::attend(
            query, keys.size(), [&](size_t p) { return keys[p].data(); }, [&](size_t p) { return values[p].data(); },
            scale, false);
        for (int c = 0; c < s.channels; ++c) {
          const float y = arithmetic::from_bf16(
              bits[static_cast<size_t>(head) * static_cast<size_t>(s.channels) + static_cast<size_t>(c)]);
          const float reference = wanted[static_cast<size_t>(c)];
          const float error = std::abs(y - reference);
          largest = std::max(largest, static_cast<double>(error));
          ASSERT_LE(error, std::abs(reference) * 0x1p-8f + 0x1p-12f)
              << name(s) << ", position " << where.second << ", head " << head << ", channel " << c << ": " << y
              << ", wanted " << reference;
        }
      }
    }
    std::printf("%-55s largest difference %.6f\n", name(s).c_str(), largest);
  }
}

}  // namespace
}  // namespace assay::cuda
