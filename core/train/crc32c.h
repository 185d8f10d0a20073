// CRC-32C (Castagnoli), and the masked form that TensorFlow's record files hold.
#pragma once

#include <cstdint>
#include <string_view>

namespace assay::train {

uint32_t crc32c(std::string_view bytes);
uint32_t masked_crc32c(std::string_view bytes);

}  // namespace assay::train
