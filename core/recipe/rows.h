// `products` of a recipe -> rows of its matrix.
#pragma once

#include <functional>

#include "core/recipe/finding.h"
#include "core/recipe/value.h"

namespace assay::recipe {

// One combination: the keys of its product in order, then test_case and cadence. `at` is the product.
struct Row {
  Value keys = Value::object();
  const discover::YamlNode* at = nullptr;
};

// Calls `take` for each row, in the order of Megatron-LM's parser: outer items, inner products, then combinations with
// the last key moving fastest. False from `take` ends it. What is wrong is noted; a product with an error gives no row.
void each_row(const discover::YamlNode& products, Findings& findings, const std::function<bool(Row)>& take);

}  // namespace assay::recipe
