#include "core/recipe/rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "core/discover/nearest.h"
#include "core/golden/text.h"
#include "core/recipe/known_words.h"
#include "core/recipe/recipe.h"

namespace assay::recipe {
namespace {

using discover::YamlEntry;
using discover::YamlNode;

std::string shown(std::string_view text) { return text::quoted(text, 60); }

const char* kind_of(const YamlNode& node) {
  if (node.kind == YamlNode::Kind::kMap) return "a mapping";
  if (node.kind == YamlNode::Kind::kSequence) return "a list";
  return node.is_null() ? "nothing" : "a single value";
}

// A dimension of the product: a key and its values with their places.
struct Dimension {
  const YamlEntry* entry = nullptr;
  std::vector<const YamlNode*> items;
};

class Rows {
 public:
  Rows(Findings& findings, const std::function<bool(Row)>& take) : findings_(findings), take_(take) {}

  void walk(const YamlNode& products) {
    if (products.is_null()) return;
    if (products.kind != YamlNode::Kind::kSequence) {
      return findings_.error(
          products, fmt::format("products is {}: a list of test cases with products is expected", kind_of(products)));
    }
    for (const YamlNode* item : products.items) {
      if (stopped_) return;
      outer(*item);
    }
  }

 private:
  void outer(const YamlNode& item) {
    if (item.kind != YamlNode::Kind::kMap) {
      return findings_.error(
          item, fmt::format("products holds {}: a mapping with test_case and products is expected", kind_of(item)));
    }
    const YamlNode* inner = item.find("products");
    if (inner == nullptr) {
      return findings_.warn(item,
                            "item without products is ignored: it expands to no workload; add products, or remove it");
    }
    constexpr std::array<std::string_view, 3> kKnown = {"test_case", "cadence", "products"};
    for (const YamlEntry& entry : item.entries) {
      if (std::find(kKnown.begin(), kKnown.end(), entry.key) != kKnown.end()) continue;
      findings_.warn(entry.line, entry.column,
                     fmt::format("key {} beside test_case is ignored{}; move it into products", shown(entry.key),
                                 discover::did_you_mean(entry.key, kKnown)));
    }
    const std::optional<std::string> test_case = name_of(item);
    if (!test_case) return;
    bool bad = false;
    const std::optional<Value> cadence = cadence_of(item, bad);
    if (bad) return;
    if (inner->kind != YamlNode::Kind::kSequence) {
      return findings_.error(*inner, fmt::format("products of {} is {}: a list of mappings is expected",
                                                 shown(*test_case), kind_of(*inner)));
    }
    if (inner->items.empty())
      findings_.warn(*inner, fmt::format("products of {} is empty: no workload", shown(*test_case)));
    for (const YamlNode* product : inner->items) {
      if (stopped_) return;
      expand(*product, *test_case, cadence);
    }
  }

  // The first name of test_case; the others are lost to Megatron-LM's parser, and so here.
  std::optional<std::string> name_of(const YamlNode& item) {
    const YamlNode* names = item.find("test_case");
    if (names == nullptr) {
      findings_.error(item, "item with products but without test_case: test_case: [NAME] is expected");
      return std::nullopt;
    }
    if (names->is_scalar() && !names->is_null()) {
      findings_.warn(*names,
                     fmt::format("test_case {} is a string where a list belongs (Megatron-LM's parser takes its first "
                                 "letter): read as [{}]; add brackets",
                                 shown(names->text), text::printable(names->text)));
      return names->text;
    }
    if (names->kind != YamlNode::Kind::kSequence || names->items.empty() || !names->items[0]->is_scalar() ||
        names->items[0]->is_null()) {
      findings_.error(
          *names,
          fmt::format("test_case is {}: a list of one name is expected",
                      names->items.empty() && names->kind == YamlNode::Kind::kSequence ? "empty" : kind_of(*names)));
      return std::nullopt;
    }
    for (size_t i = 1; i < names->items.size(); ++i) {
      findings_.warn(*names->items[i],
                     fmt::format("test_case {} is dropped: only the first name of the list counts; give it "
                                 "an item of its own",
                                 shown(names->items[i]->text)));
    }
    return python_str(to_value(*names->items[0]));
  }

  // The list under `cadence`; nullopt: there is none, or (`bad`) it is wrong.
  std::optional<Value> cadence_of(const YamlNode& map, bool& bad) {
    const YamlNode* node = map.find("cadence");
    if (node == nullptr || node->is_null()) return std::nullopt;
    std::vector<const YamlNode*> items = node->items;
    if (node->is_scalar()) {
      findings_.warn(*node,
                     fmt::format("cadence {} is a string where a list belongs (Megatron-LM's parser refuses it): read "
                                 "as [{}]; add brackets",
                                 shown(node->text), text::printable(node->text)));
      items = {node};
    } else if (node->kind == YamlNode::Kind::kMap) {
      findings_.error(*node, "cadence is a mapping: a list is expected");
      bad = true;
    }
    Value list = Value::array();
    for (const YamlNode* item : items) {
      if (!item->is_scalar() || std::find(kCadences.begin(), kCadences.end(), item->text) == kCadences.end()) {
        findings_.error(*item, fmt::format("cadence {} is not one of pr, nightly, mergegroup, weekly{}",
                                           item->is_scalar() ? shown(item->text) : kind_of(*item),
                                           discover::did_you_mean(item->text, kCadences)));
        bad = true;
      }
      list.push_back(item->text);
    }
    return list;
  }

  void expand(const YamlNode& product, const std::string& test_case, const std::optional<Value>& outer_cadence) {
    if (product.kind != YamlNode::Kind::kMap) {
      return findings_.error(product, fmt::format("a product of {} is {}: a mapping of lists is expected",
                                                  shown(test_case), kind_of(product)));
    }
    bool bad = false;
    std::optional<Value> cadence = cadence_of(product, bad);
    if (!cadence) cadence = outer_cadence;
    std::vector<Dimension> dimensions;
    for (const YamlEntry& entry : product.entries) {
      if (entry.key != "cadence") dimensions.push_back(dimension(entry, bad));
    }
    if (bad) return;
    std::vector<size_t> at(dimensions.size(), 0);
    for (const Dimension& one : dimensions) {
      if (one.items.empty()) return;
    }
    while (!stopped_) {
      Row row{.at = &product};
      Value cadence_of_row = cadence ? *cadence : Value{kCadences[0], kCadences[1], kCadences[2]};
      for (size_t i = 0; i < dimensions.size(); ++i) {
        Value value = to_value(*dimensions[i].items[at[i]]);
        if (dimensions[i].entry->key == "scope" && value.is_string()) {
          const ScopeAlias* alias = scope_alias(value.get_ref<const std::string&>());
          if (alias != nullptr) value = alias->tier;
          if (alias != nullptr && !cadence && !alias->cadence.empty()) cadence_of_row = Value{alias->cadence};
        }
        row.keys[dimensions[i].entry->key] = std::move(value);
      }
      row.keys["test_case"] = test_case;
      row.keys["cadence"] = std::move(cadence_of_row);
      if (!take_(std::move(row))) {
        stopped_ = true;
        return;
      }
      size_t moving = dimensions.size();
      while (moving > 0 && ++at[moving - 1] == dimensions[moving - 1].items.size()) at[--moving] = 0;
      if (moving == 0) return;
    }
  }

  Dimension dimension(const YamlEntry& entry, bool& bad) {
    Dimension result{&entry, entry.value->items};
    const YamlNode& node = *entry.value;
    if (entry.key == "test_case") {
      findings_.warn(entry.line, entry.column,
                     "test_case inside products repeats rows and names nothing: it stands beside products");
    }
    if (node.kind == YamlNode::Kind::kMap || node.is_null()) {
      findings_.error(node, fmt::format("{} is {}: a list of values is expected", shown(entry.key), kind_of(node)));
      bad = true;
      return result;
    }
    if (node.is_scalar()) {
      const bool string = to_value(node).is_string();
      findings_.warn(
          node, fmt::format("{} {} is {} where a list belongs (Megatron-LM's parser {}): read as [{}]; add brackets",
                            text::printable(entry.key), shown(node.text), string ? "a string" : "a single value",
                            string ? "expands it letter by letter" : "refuses it", text::printable(node.text)));
      result.items = {&node};
    } else if (node.items.empty()) {
      findings_.warn(node, fmt::format("{} is an empty list: this product expands to no workload", shown(entry.key)));
    }
    for (const YamlNode* item : result.items) {
      if (item->is_scalar()) check_item(entry.key, *item);
    }
    return result;
  }

  void check_item(const std::string& key, const YamlNode& item) {
    if (key == "scope") check_scope(item, findings_);
    if (key == "platforms") check_platform(item, findings_);
    if (key == "environment") check_environment(item, findings_);
  }

  Findings& findings_;
  const std::function<bool(Row)>& take_;
  bool stopped_ = false;
};

}  // namespace

void each_row(const discover::YamlNode& products, Findings& findings, const std::function<bool(Row)>& take) {
  Rows(findings, take).walk(products);
}

}  // namespace assay::recipe
