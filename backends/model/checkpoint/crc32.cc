#include "backends/model/checkpoint/crc32.h"

#include <array>
#include <cstring>

namespace assay::model {
namespace {

constexpr uint32_t kPolynomial = 0xedb88320U;  // 0x04C11DB7 with its bits reversed

using Tables = std::array<std::array<uint32_t, 256>, 8>;

// tables[n][b]: register after byte b and then n zero bytes, from a zero register.
constexpr Tables make_tables() {
  Tables tables{};
  for (uint32_t b = 0; b < 256; ++b) {
    uint32_t value = b;
    for (int bit = 0; bit < 8; ++bit) value = (value >> 1) ^ ((value & 1U) != 0 ? kPolynomial : 0U);
    tables[0][b] = value;
  }
  for (size_t n = 1; n < 8; ++n) {
    for (size_t b = 0; b < 256; ++b) {
      const uint32_t previous = tables[n - 1][b];
      tables[n][b] = (previous >> 8) ^ tables[0][previous & 0xffU];
    }
  }
  return tables;
}

constexpr Tables kTables = make_tables();

uint32_t run_tables(std::span<const std::byte> data, uint32_t state) {
  size_t i = 0;
  for (; i + 8 <= data.size(); i += 8) {
    uint32_t low = 0;
    uint32_t high = 0;
    std::memcpy(&low, data.data() + i, 4);
    std::memcpy(&high, data.data() + i + 4, 4);
    low ^= state;
    state = kTables[7][low & 0xffU] ^ kTables[6][(low >> 8) & 0xffU] ^ kTables[5][(low >> 16) & 0xffU] ^
            kTables[4][low >> 24] ^ kTables[3][high & 0xffU] ^ kTables[2][(high >> 8) & 0xffU] ^
            kTables[1][(high >> 16) & 0xffU] ^ kTables[0][high >> 24];
  }
  for (; i < data.size(); ++i) {
    state = (state >> 8) ^ kTables[0][(state ^ static_cast<uint32_t>(data[i])) & 0xffU];
  }
  return state;
}

// Product of two polynomials modulo P; the coefficient of x^0 is the highest bit.
uint32_t multiply(uint32_t a, uint32_t b) {
  uint32_t product = 0;
  for (uint32_t bit = 0x80000000U; bit != 0; bit >>= 1) {
    if ((a & bit) != 0) product ^= b;
    b = (b >> 1) ^ ((b & 1U) != 0 ? kPolynomial : 0U);
  }
  return product;
}

}  // namespace

uint32_t crc32_before(uint32_t crc, uint64_t behind) {
  uint32_t power = 0x00800000U;  // x^8: one byte
  for (; behind != 0; behind >>= 1) {
    if ((behind & 1U) != 0) crc = multiply(crc, power);
    power = multiply(power, power);
  }
  return crc;
}

uint32_t crc32_portable(std::span<const std::byte> data, uint32_t crc) { return ~run_tables(data, ~crc); }

uint32_t crc32(std::span<const std::byte> data, uint32_t crc) {
  const uint32_t state = crc32_fast_prefix(data, ~crc);
  return ~run_tables(data, state);
}

}  // namespace assay::model
