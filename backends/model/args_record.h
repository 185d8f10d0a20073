// Checkpoint arguments as plain data: what a Python argparse.Namespace holds, without Python.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <variant>
#include <vector>

namespace assay::model {

// One value: None, bool, int, float, str, a list (tuples too), or an opaque record (a class instance or an enum member
// that the reader does not interpret; `text` is its class name).
struct ArgValue;
using ArgList = std::vector<ArgValue>;
struct Opaque {
  std::string text;
};
struct ArgValue {
  std::variant<std::monostate, bool, int64_t, double, std::string, ArgList, Opaque> value;
};

// Name (underscores, as in the Namespace: "num_layers") -> value. Names absent from the checkpoint are absent here.
using ArgRecord = std::map<std::string, ArgValue>;

}  // namespace assay::model
