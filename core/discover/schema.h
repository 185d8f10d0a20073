// Collects schema errors of one file and keeps the first.
#pragma once

#include <string>

#include "assay/status.h"
#include "core/discover/yaml_text.h"
#include "core/discover/yaml_tree.h"

namespace assay::discover {

class SchemaErrors {
 public:
  explicit SchemaErrors(std::string file) : file_(std::move(file)) {}

  void add(const YamlNode& at, const std::string& what) {
    if (first_.ok()) first_ = invalid(at_place(file_, at.line, at.column) + what);
  }

  // The text of a scalar; a null keeps `into` as it is; a list or mapping is an error.
  void read_text(const YamlNode& node, const std::string& key, std::string& into) {
    if (!node.is_scalar()) return add(node, key + " must be a scalar");
    if (!node.is_null()) into = node.text;
  }

  const Status& first() const { return first_; }

 private:
  std::string file_;
  Status first_;
};

}  // namespace assay::discover
