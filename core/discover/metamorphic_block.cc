#include "core/discover/metamorphic_block.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>

#include "core/discover/nearest.h"
#include "core/metamorphic/relation.h"

namespace assay::discover {
namespace {

constexpr const char* kName = "ASSAY.metamorphic";
constexpr std::array<std::string_view, 6> kKeys = {"relations", "batches",       "chunks",
                                                   "threads",   "prompt_tokens", "new_tokens"};

struct Range {
  int32_t least = 1;
  int32_t most = 4096;
};
constexpr Range kSizes = {1, 4096};              // requests, tokens or threads
constexpr Range kPromptTokens = {2, 1'048'576};  // a logprob needs a token before it
constexpr Range kNewTokens = {2, 65'536};        // a decode step follows the prefill

std::vector<std::string_view> known_relations() {
  std::vector<std::string_view> names;
  for (const metamorphic::RelationInfo& info : metamorphic::relation_table()) names.push_back(info.name);
  return names;
}

std::optional<int32_t> whole_number(const YamlNode& node, const Range& range) {
  if (!node.is_scalar()) return std::nullopt;
  int32_t number = 0;
  const char* const end = node.text.data() + node.text.size();
  const auto [stop, error] = std::from_chars(node.text.data(), end, number);
  if (error != std::errc() || stop != end || number < range.least || number > range.most) return std::nullopt;
  return number;
}

std::string expected(const Range& range) {
  return "a whole number from " + std::to_string(range.least) + " to " + std::to_string(range.most) + " is expected";
}

std::string seen(const YamlNode& node) {
  if (node.is_scalar()) return node.is_null() ? "nothing" : "'" + node.text + "'";
  return node.kind == YamlNode::Kind::kMap ? "a mapping" : "a list";
}

std::optional<int32_t> read_number(const YamlNode& node, const std::string& what, const Range& range,
                                   SchemaErrors& errors) {
  const std::optional<int32_t> number = whole_number(node, range);
  if (!number) errors.add(node, what + ": " + expected(range) + ", not " + seen(node));
  return number;
}

// A scalar counts as a list of one.
std::vector<const YamlNode*> items_of(const YamlNode& node) {
  if (node.is_scalar()) return {&node};
  return node.items;
}

std::vector<int32_t> read_numbers(const YamlNode& node, const std::string& what, SchemaErrors& errors) {
  std::vector<int32_t> numbers;
  if (node.kind == YamlNode::Kind::kMap || items_of(node).empty()) {
    errors.add(node, what + " must be a number or a list of at least one");
  }
  for (const YamlNode* item : items_of(node)) {
    const std::optional<int32_t> number = read_number(*item, what, kSizes, errors);
    if (!number) continue;
    if (std::find(numbers.begin(), numbers.end(), *number) != numbers.end()) {
      errors.add(*item, what + " names " + std::to_string(*number) + " twice");
    }
    numbers.push_back(*number);
  }
  return numbers;
}

// Empty stands for all of them.
std::vector<std::string> read_choice(const YamlNode& node, const std::string& what, SchemaErrors& errors) {
  if (node.is_scalar() && node.text == "all") return {};
  return read_relations(node, what, errors);
}

void read_member(const YamlEntry& entry, MetamorphicBlock& block, SchemaErrors& errors) {
  const std::string& key = entry.key;
  const YamlNode& value = *entry.value;
  const std::string what = std::string(kName) + "." + key;
  if (key == "relations") {
    block.relations = read_choice(value, what, errors);
  } else if (key == "batches") {
    block.batches = read_numbers(value, what, errors);
  } else if (key == "chunks") {
    block.chunks = read_numbers(value, what, errors);
  } else if (key == "threads") {
    block.threads = read_numbers(value, what, errors);
  } else if (key == "prompt_tokens") {
    block.prompt_tokens = read_number(value, what, kPromptTokens, errors);
  } else if (key == "new_tokens") {
    block.new_tokens = read_number(value, what, kNewTokens, errors);
  } else {
    errors.add(value, what + " is unknown" + did_you_mean(key, kKeys));
  }
}

}  // namespace

std::vector<std::string> read_relations(const YamlNode& node, const std::string& what, SchemaErrors& errors) {
  std::vector<std::string> names;
  if (node.kind == YamlNode::Kind::kMap || items_of(node).empty()) {
    errors.add(node, what + " must be a relation or a list of at least one");
  }
  for (const YamlNode* item : items_of(node)) {
    if (!item->is_scalar() || item->is_null() || item->text.empty()) {
      errors.add(*item, what + ": the name of a relation is expected, not " + seen(*item));
    } else if (item->text == "all") {
      errors.add(*item, what + ": 'all' stands alone, as 'metamorphic: all'");
    } else if (!metamorphic::parse_relation(item->text)) {
      errors.add(*item,
                 what + ": relation '" + item->text + "' is unknown" + did_you_mean(item->text, known_relations()));
    } else if (std::find(names.begin(), names.end(), item->text) != names.end()) {
      errors.add(*item, what + " names " + item->text + " twice");
    }
    names.push_back(item->text);
  }
  return names;
}

MetamorphicBlock read_metamorphic_block(const YamlNode& node, SchemaErrors& errors) {
  MetamorphicBlock block;
  if (node.is_null() || (node.kind == YamlNode::Kind::kMap && node.entries.empty())) {
    errors.add(node,
               std::string(kName) + " must be all, a list of relations, or a mapping with members such as relations");
  } else if (node.kind == YamlNode::Kind::kMap) {
    for (const YamlEntry& entry : node.entries) read_member(entry, block, errors);
  } else {
    block.relations = read_choice(node, kName, errors);
  }
  return block;
}

std::vector<std::string> relations_of(const MetamorphicBlock& block) {
  if (!block.relations.empty()) return block.relations;
  std::vector<std::string> names;
  for (const std::string_view name : known_relations()) names.emplace_back(name);
  return names;
}

}  // namespace assay::discover
