#include "core/discover/yaml_json.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "core/discover/yaml_text.h"
#include "core/discover/yaml_tree.h"

namespace assay::discover {
namespace {

using Json = nlohmann::ordered_json;

Json scalar(const YamlNode& node) {
  if (node.is_null()) return nullptr;
  if (node.plain) {
    for (const char* word : {"true", "True", "TRUE"}) {
      if (node.text == word) return true;
    }
    for (const char* word : {"false", "False", "FALSE"}) {
      if (node.text == word) return false;
    }
    Json number = Json::parse(node.text, nullptr, false);
    if (number.is_number()) return number;
  }
  return node.text;
}

Json value_of(const YamlNode& node) {
  if (node.is_scalar()) return scalar(node);
  if (node.kind == YamlNode::Kind::kSequence) {
    Json list = Json::array();
    for (const YamlNode* item : node.items) list.push_back(value_of(*item));
    return list;
  }
  Json object = Json::object();
  auto& entries = object.get_ref<Json::object_t&>();
  for (const YamlEntry& entry : node.entries) {  // keys are unique already: no search among those before
    static_cast<Json::object_t::Container&>(entries).emplace_back(entry.key, value_of(*entry.value));
  }
  return object;
}

}  // namespace

Result<std::string> yaml_file_to_json(const std::string& file) {
  constexpr size_t kMostBytes = 4u << 20;
  Result<std::string> text = read_file(file, kMostBytes);
  if (!text) return text.status();
  const Result<YamlTree> tree = parse_yaml(*std::move(text), file);
  if (!tree) return tree.status();
  if (!tree->duplicates.empty()) {
    const YamlDuplicate& twice = tree->duplicates.front();
    return invalid(at_place(file, twice.line, 1) + twice.key + " is given twice, first in line " +
                   std::to_string(twice.first_line) + "; keep one of them");
  }
  if (tree->root == nullptr || tree->root->is_null()) return std::string("{}");
  if (tree->root->kind != YamlNode::Kind::kMap) {
    return invalid(at_place(file, tree->root->line, tree->root->column) +
                   "expected names and values like 'partition: gpu'");
  }
  return value_of(*tree->root).dump();
}

}  // namespace assay::discover
