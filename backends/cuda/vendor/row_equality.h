// The test behind determinism level L2 of a library's matrix product.
#pragma once

#include <functional>

#include "backends/cuda/vendor/vendor_table.h"

namespace assay::cuda::vendor {

// Computes the product for shape.tokens tokens on the null stream.
using Product = std::function<void(const GemmShape& shape, const void* x, float* y)>;

// Whether a token's results have the same bits alone and among 7, 64, 200, 300, 600, 1,500 and `most` tokens (no more
// than that many), at the first, a middle and the last place: on inputs of several magnitudes, bit for bit. Waits.
// Throws CudaError.
bool rows_are_equal(int rows, int cols, int most, const Product& product);

}  // namespace assay::cuda::vendor
