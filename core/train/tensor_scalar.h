// A scalar in the form of a TensorProto.
#pragma once

#include <optional>
#include <string_view>

namespace assay::train {

// The value of a serialized TensorProto of one number; nothing for other shapes and types (text, complex).
std::optional<double> scalar_of_tensor(std::string_view message);

}  // namespace assay::train
