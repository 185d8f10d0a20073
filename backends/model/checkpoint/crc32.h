// CRC-32 of zip archives (polynomial 0x04C11DB7, reflected, initial value and final xor 0xFFFFFFFF).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace assay::model {

// CRC of `data` appended to bytes whose CRC is `crc` (0 for none): crc32(b, crc32(a)) == crc32(ab). Thread-safe.
// Uses carry-less multiplication where the processor has it; the result never depends on that.
uint32_t crc32(std::span<const std::byte> data, uint32_t crc = 0);

// The part that `crc`, of some bytes, has in the CRC of those bytes with `behind` further ones after them:
// crc32(ab) == (crc32_before(crc32(a), size of b) ^ crc32(b)). So parts may be taken in any order. O(log behind).
uint32_t crc32_before(uint32_t crc, uint64_t behind);

// The table version alone; the test compares both.
uint32_t crc32_portable(std::span<const std::byte> data, uint32_t crc = 0);

// Internal border between the portable and the processor's file: consumes a multiple of 64 bytes (maybe none) from the
// front of `data` and advances it. `state` is the raw register (already inverted). Does nothing where there is no fast
// version.
uint32_t crc32_fast_prefix(std::span<const std::byte>& data, uint32_t state);

}  // namespace assay::model
