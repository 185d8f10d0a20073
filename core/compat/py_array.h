// The part of NumPy that the routing metric uses. Throws PyError like Python; pure functions, safe from any thread.
#pragma once

#include <cstddef>
#include <vector>

#include "core/compat/py_value.h"

namespace assay::compat {

// A rectangular array; `shape` is empty for a single value.
struct Array {
  enum class Type : uint8_t { kBool, kInt, kFloat, kText, kObject };
  Type type = Type::kFloat;
  std::vector<size_t> shape;
  std::vector<Value> values;  // row-major; of type kFloat all are floats, of kInt all integers
};

Array make_array(const Value& value);                // numpy.array; ValueError when it is ragged
Array take(const Array& array, const Value& index);  // array[index]; IndexError
void sort_last_axis(Array* array);                   // numpy.sort(array, axis=-1); AxisError
bool array_equal(const Array& a, const Array& b);    // numpy.array_equal

}  // namespace assay::compat
