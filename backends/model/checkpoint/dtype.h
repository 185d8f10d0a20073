// Element types of stored tensors. Three are weights that we read; every other torch dtype is only listed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace assay::model {

enum class Dtype : uint8_t { kFloat32, kFloat16, kBfloat16, kOther };

// Bytes of one element of kFloat32, kFloat16 or kBfloat16; 0 for kOther.
size_t dtype_size(Dtype dtype);

// "float32", "float16", "bfloat16", "other".
std::string_view dtype_name(Dtype dtype);

// From torch's spelling without "torch." ("bfloat16"); kOther for any name that is not one of the three.
Dtype dtype_from_name(std::string_view name);

// Bytes of one element of any torch dtype known by name ("int64", "float8_e4m3fn"); 0 when unknown.
size_t torch_dtype_size(std::string_view name);

// torch dtype of a typed storage class ("BFloat16Storage" -> "bfloat16"); empty when unknown.
std::string_view dtype_of_storage_class(std::string_view storage_class);

// Storage class of a weight dtype, the inverse of the above; empty for kOther.
std::string_view storage_class_of(Dtype dtype);

}  // namespace assay::model
