#include "core/compat/py_array.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>

namespace assay::compat {
namespace {

using Kind = Value::Kind;
using Type = Array::Type;

constexpr size_t kMostAxes = 64;  // of NumPy 2

size_t product(const std::vector<size_t>& shape, size_t from, size_t to) {
  size_t count = 1;
  for (size_t i = from; i < to; ++i) count *= shape[i];
  return count;
}

// Flattens `value` from axis `axis` on; the first item of each level tells the shape, the others have to agree.
void flatten(const Value& value, size_t axis, Array* array) {
  const bool known = axis < array->shape.size();
  if (value.kind != Kind::kList) {
    if (known) throw PyError{"ValueError", "the array is ragged"};
    array->values.push_back(value);
    return;
  }
  if (!known) throw PyError{"ValueError", "the array is ragged"};
  if (value.items.size() != array->shape[axis]) throw PyError{"ValueError", "the array is ragged"};
  for (const Value& item : value.items) flatten(item, axis + 1, array);
}

Type type_of(const std::vector<Value>& values) {
  bool text = false, real = false, integer = false, logical = false, object = false;
  for (const Value& value : values) {
    text |= value.kind == Kind::kText;
    real |= value.kind == Kind::kFloat;
    integer |= value.kind == Kind::kInt;
    logical |= value.kind == Kind::kBool;
    object |= value.kind == Kind::kNone || value.kind == Kind::kDict || value.kind == Kind::kBigInt;
  }
  if (object) return Type::kObject;
  if (text) return real || integer || logical ? Type::kObject : Type::kText;
  return real || values.empty() ? Type::kFloat : integer ? Type::kInt : Type::kBool;
}

bool nan_last_less(const Value& a, const Value& b) {
  const Order order = compare(a, b);
  if (order != Order::kUnordered) return order == Order::kLess;
  return !std::isnan(a.number);  // b alone, or b too, is NaN: only a number comes before one
}

bool object_less(const Value& a, const Value& b) {
  if (a.is_number() && b.is_number()) return compare(a, b) == Order::kLess;
  if (a.kind == Kind::kText && b.kind == Kind::kText) return a.text < b.text;
  throw PyError{"TypeError", std::string("no order between ") + type_name(a) + " and " + type_name(b)};
}

// The positions along axis 0 that a list of integers names.
std::vector<size_t> positions_of(const Array& index, size_t length) {
  std::vector<size_t> positions;
  for (const Value& value : index.values) {
    if (value.kind == Kind::kBigInt) throw PyError{"IndexError", "an index is out of bounds"};
    const int64_t size = static_cast<int64_t>(length);
    if (value.integer < -size || value.integer >= size) throw PyError{"IndexError", "an index is out of bounds"};
    positions.push_back(static_cast<size_t>(value.integer < 0 ? value.integer + size : value.integer));
  }
  return positions;
}

Array take_rows(const Array& array, const std::vector<size_t>& rows, size_t axes, std::vector<size_t> shape) {
  Array out{.type = array.type, .shape = std::move(shape), .values = {}};
  out.shape.insert(out.shape.end(), array.shape.begin() + static_cast<std::ptrdiff_t>(axes), array.shape.end());
  const size_t width = product(array.shape, axes, array.shape.size());
  for (const size_t row : rows) {
    const auto begin = array.values.begin() + static_cast<std::ptrdiff_t>(row * width);
    out.values.insert(out.values.end(), begin, begin + static_cast<std::ptrdiff_t>(width));
  }
  return out;
}

Array take_mask(const Array& array, const Array& mask) {
  const size_t axes = mask.shape.size();
  if (axes > array.shape.size() || !std::equal(mask.shape.begin(), mask.shape.end(), array.shape.begin())) {
    throw PyError{"IndexError", "the mask has another shape"};
  }
  std::vector<size_t> rows;
  for (size_t i = 0; i < mask.values.size(); ++i) {
    if (mask.values[i].integer != 0) rows.push_back(i);
  }
  const size_t count = rows.size();
  return take_rows(array, rows, axes, {count});
}

}  // namespace

Array make_array(const Value& value) {
  Array array;
  for (const Value* at = &value; at->kind == Kind::kList; at = &at->items.front()) {
    array.shape.push_back(at->items.size());
    if (array.shape.size() > kMostAxes) throw PyError{"ValueError", "too many axes"};
    if (at->items.empty()) break;
  }
  flatten(value, 0, &array);
  array.type = type_of(array.values);
  if (array.type == Type::kFloat) {
    for (Value& one : array.values) one = float_value(real_number(one));
  }
  return array;
}

Array take(const Array& array, const Value& index) {
  if (index.kind == Kind::kBool) {  // a new axis in front, of one row or of none
    Array out = array;
    out.shape.insert(out.shape.begin(), index.integer != 0 ? 1 : 0);
    if (index.integer == 0) out.values.clear();
    return out;
  }
  if (!index.is_integer() && index.kind != Kind::kList) {
    throw PyError{"IndexError", std::string("a ") + type_name(index) + " is no index"};
  }
  const Array positions = make_array(index);
  if (index.kind == Kind::kList && positions.type == Type::kBool) return take_mask(array, positions);
  if (positions.type != Type::kInt && !positions.values.empty()) {
    throw PyError{"IndexError", "an index is no integer"};
  }
  if (array.shape.empty()) throw PyError{"IndexError", "too many indices"};
  return take_rows(array, positions_of(positions, array.shape[0]), 1, positions.shape);
}

void sort_last_axis(Array* array) {
  if (array->shape.empty()) throw PyError{"AxisError", "a single value has no axis to sort along"};
  const size_t width = array->shape.back();
  const auto less = array->type == Type::kObject || array->type == Type::kText ? object_less : nan_last_less;
  for (size_t at = 0; width > 1 && at + width <= array->values.size(); at += width) {
    const auto begin = array->values.begin() + static_cast<std::ptrdiff_t>(at);
    std::sort(begin, begin + static_cast<std::ptrdiff_t>(width), less);
  }
}

bool array_equal(const Array& a, const Array& b) {
  if (a.shape != b.shape) return false;
  const bool real = a.type == Type::kFloat || b.type == Type::kFloat;
  return std::equal(a.values.begin(), a.values.end(), b.values.begin(), [&](const Value& x, const Value& y) {
    if (real && x.is_number() && y.is_number()) return real_number(x) == real_number(y);
    return equal(x, y);
  });
}

}  // namespace assay::compat
