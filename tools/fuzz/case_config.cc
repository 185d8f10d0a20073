// model_config.yaml: the quick reader and the full one build the same tree; a case is read from whatever it holds.
#include "core/discover/case_reader.h"
#include "core/discover/list.h"
#include "core/discover/yaml_tree.h"
#include "tools/fuzz/fuzz.h"

namespace {

using assay::discover::YamlEntry;
using assay::discover::YamlNode;

constexpr size_t kMostText = 1u << 20;  // aliases make a tree large on paper

void print(const YamlNode& node, std::string& out) {
  if (out.size() > kMostText) return;
  out += std::to_string(node.line) + ":" + std::to_string(node.column) + (node.plain ? "p" : "q");
  if (node.is_scalar()) out += "'" + node.text + "'";
  for (const YamlNode* item : node.items) print(*item, out += "-");
  for (const YamlEntry& entry : node.entries) print(*entry.value, out += entry.key + "=");
}

std::string tree_of(const std::string& text, bool simple_first) {
  const auto tree = assay::discover::parse_yaml(text, "f", {.simple_first = simple_first});
  if (!tree) {
    assay::fuzz::require_message(tree.status().message());
    return "failed: " + tree.status().message();
  }
  std::string out;
  for (const auto& twice : tree->duplicates) out += twice.key + std::to_string(twice.line);
  if (tree->root != nullptr) print(*tree->root, out);
  return out;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string text(assay::fuzz::text_of(data, size));
  assay::fuzz::require(tree_of(text, true) == tree_of(text, false), "both readers of YAML build the same tree");
  assay::TestCase test;
  test.name = test.dir = test.config = "f";
  assay::discover::read_config(text, test);
  if (!test.error.ok()) assay::fuzz::require_message(test.error.message());
  assay::fuzz::require(!assay::discover::list_json({test}).empty(), "a case can be listed");
  return 0;
}
