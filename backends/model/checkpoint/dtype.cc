#include "backends/model/checkpoint/dtype.h"

#include <array>

namespace assay::model {
namespace {

struct TorchDtype {
  std::string_view name;
  std::string_view storage_class;  // empty: torch has no typed storage for it
  size_t size;                     // bytes of one element
  Dtype dtype;
};

constexpr std::array<TorchDtype, 18> kTorchDtypes{{
    {"float32", "FloatStorage", 4, Dtype::kFloat32},
    {"float16", "HalfStorage", 2, Dtype::kFloat16},
    {"bfloat16", "BFloat16Storage", 2, Dtype::kBfloat16},
    {"float64", "DoubleStorage", 8, Dtype::kOther},
    {"int8", "CharStorage", 1, Dtype::kOther},
    {"uint8", "ByteStorage", 1, Dtype::kOther},
    {"int16", "ShortStorage", 2, Dtype::kOther},
    {"int32", "IntStorage", 4, Dtype::kOther},
    {"int64", "LongStorage", 8, Dtype::kOther},
    {"bool", "BoolStorage", 1, Dtype::kOther},
    {"complex64", "ComplexFloatStorage", 8, Dtype::kOther},
    {"complex128", "ComplexDoubleStorage", 16, Dtype::kOther},
    {"float8_e4m3fn", "", 1, Dtype::kOther},
    {"float8_e5m2", "", 1, Dtype::kOther},
    {"float8_e8m0fnu", "", 1, Dtype::kOther},
    {"uint16", "", 2, Dtype::kOther},
    {"uint32", "", 4, Dtype::kOther},
    {"uint64", "", 8, Dtype::kOther},
}};

}  // namespace

size_t dtype_size(Dtype dtype) {
  switch (dtype) {
    case Dtype::kFloat32:
      return 4;
    case Dtype::kFloat16:
    case Dtype::kBfloat16:
      return 2;
    case Dtype::kOther:
      break;
  }
  return 0;
}

std::string_view dtype_name(Dtype dtype) {
  for (const TorchDtype& entry : kTorchDtypes) {
    if (entry.dtype == dtype && dtype != Dtype::kOther) return entry.name;
  }
  return "other";
}

Dtype dtype_from_name(std::string_view name) {
  for (const TorchDtype& entry : kTorchDtypes) {
    if (entry.name == name) return entry.dtype;
  }
  return Dtype::kOther;
}

size_t torch_dtype_size(std::string_view name) {
  for (const TorchDtype& entry : kTorchDtypes) {
    if (entry.name == name) return entry.size;
  }
  return 0;
}

std::string_view dtype_of_storage_class(std::string_view storage_class) {
  for (const TorchDtype& entry : kTorchDtypes) {
    if (!entry.storage_class.empty() && entry.storage_class == storage_class) return entry.name;
  }
  return {};
}

std::string_view storage_class_of(Dtype dtype) {
  for (const TorchDtype& entry : kTorchDtypes) {
    if (entry.dtype == dtype && dtype != Dtype::kOther) return entry.storage_class;
  }
  return {};
}

}  // namespace assay::model
