#include "backends/model/checkpoint/crc32.h"

#include <gtest/gtest.h>

#include <random>
#include <string_view>
#include <vector>

namespace assay::model {
namespace {

std::span<const std::byte> bytes_of(std::string_view text) {
  return {reinterpret_cast<const std::byte*>(text.data()), text.size()};
}

std::vector<std::byte> random_bytes(size_t size) {
  std::mt19937 engine(7);
  std::vector<std::byte> data(size);
  for (std::byte& b : data) b = static_cast<std::byte>(engine());
  return data;
}

TEST(Crc32, GivesTheCheckValueOfTheStandard) {
  EXPECT_EQ(crc32(bytes_of("123456789")), 0xcbf43926U);
  EXPECT_EQ(crc32_portable(bytes_of("123456789")), 0xcbf43926U);
  EXPECT_EQ(crc32({}), 0U);
}

TEST(Crc32, IsTheSameWithAndWithoutCarrylessMultiplication) {
  const std::vector<std::byte> data = random_bytes(1100);
  for (size_t begin = 0; begin < 17; ++begin) {
    for (size_t size = 0; size + begin <= data.size(); size += size < 200 ? 1 : 37) {
      const auto part = std::span(data).subspan(begin, size);
      ASSERT_EQ(crc32(part, 0x1234U), crc32_portable(part, 0x1234U)) << begin << "+" << size;
    }
  }
}

TEST(Crc32, ContinuesFromAnEarlierPart) {
  const std::vector<std::byte> data = random_bytes(1000);
  const uint32_t whole = crc32(data);
  for (size_t cut : {0, 1, 63, 64, 65, 500, 999, 1000}) {
    EXPECT_EQ(crc32(std::span(data).subspan(cut), crc32(std::span(data).first(cut))), whole) << cut;
  }
}

TEST(Crc32, OfPartsIsPutTogetherInAnyOrder) {
  const std::vector<std::byte> data = random_bytes(5000);
  for (size_t cut : {0, 1, 7, 64, 1000, 4999, 5000}) {
    const uint32_t front = crc32(std::span(data).first(cut));
    const uint32_t back = crc32(std::span(data).subspan(cut));
    EXPECT_EQ(crc32_before(front, data.size() - cut) ^ back, crc32(data)) << cut;
  }
}

}  // namespace
}  // namespace assay::model
