#include "core/discover/assay_block.h"

#include <array>
#include <cmath>

#include "core/discover/metamorphic_block.h"
#include "core/discover/nearest.h"
#include "core/discover/units.h"
#include "core/discover/waivers.h"

namespace assay::discover {
namespace {

constexpr std::array<std::string_view, 13> kKeys = {
    "engine",   "backend", "golden",  "known_completion", "tolerance",   "timeout",           "memory_limit",
    "requires", "tags",    "waivers", "script",           "metamorphic", "workers_per_device"};
constexpr std::array<std::string_view, 2> kGoldenKinds = {"known_completion", "characteristic"};

// A non-empty text.
std::string text_of(const YamlNode& node, const std::string& key, SchemaErrors& errors) {
  if (!node.is_scalar() || node.text.empty() || node.is_null()) errors.add(node, "ASSAY." + key + " must be a text");
  return node.text;
}

// A text or a list of texts.
std::vector<std::string> texts_of(const YamlNode& node, const std::string& key, SchemaErrors& errors) {
  if (node.is_scalar()) return {text_of(node, key, errors)};
  if (node.kind == YamlNode::Kind::kMap) errors.add(node, "ASSAY." + key + " must be a text or a list of texts");
  std::vector<std::string> texts;
  for (const YamlNode* item : node.items) texts.push_back(text_of(*item, key, errors));
  return texts;
}

void read_golden(const YamlNode& node, AssayBlock& block, SchemaErrors& errors) {
  const std::string kind = text_of(node, "golden", errors);
  if (kind == "known_completion") {
    block.golden = GoldenKind::kKnownCompletion;
  } else if (kind != "characteristic") {
    errors.add(node, "ASSAY.golden '" + kind + "' is neither known_completion nor characteristic" +
                         did_you_mean(kind, kGoldenKinds));
  }
}

void read_tolerance(const YamlNode& node, AssayBlock& block, SchemaErrors& errors) {
  if (node.kind != YamlNode::Kind::kMap) return errors.add(node, "ASSAY.tolerance must be a mapping of metric: number");
  for (const YamlEntry& entry : node.entries) {
    const auto value = entry.value->is_scalar() ? parse_number(entry.value->text) : std::nullopt;
    if (!value || *value < 0) {
      errors.add(*entry.value, "ASSAY.tolerance " + entry.key + ": a number of at least 0 is expected, not '" +
                                   entry.value->text + "'");
    } else {
      block.tolerance[entry.key] = *value;
    }
  }
}

std::optional<int32_t> read_workers_per_device(const YamlNode& node, SchemaErrors& errors) {
  const auto number = node.is_scalar() ? parse_number(node.text) : std::nullopt;
  if (number && *number >= 1 && *number <= kMostWorkersPerDevice && *number == std::floor(*number)) {
    return static_cast<int32_t>(*number);
  }
  errors.add(node, "ASSAY.workers_per_device: a whole number from 1 to " + std::to_string(kMostWorkersPerDevice) +
                       " is expected, not '" + node.text + "'");
  return std::nullopt;
}

void read_key(const YamlEntry& entry, AssayBlock& block, SchemaErrors& errors) {
  const std::string& key = entry.key;
  const YamlNode& value = *entry.value;
  if (key == "engine") {
    block.engine = text_of(value, key, errors);
  } else if (key == "backend") {
    block.backend = text_of(value, key, errors);
  } else if (key == "script") {
    block.script = text_of(value, key, errors);
  } else if (key == "golden") {
    read_golden(value, block, errors);
  } else if (key == "known_completion") {
    block.known_completion = texts_of(value, key, errors);
  } else if (key == "tolerance") {
    read_tolerance(value, block, errors);
  } else if (key == "timeout") {
    block.timeout_s = parse_duration(text_of(value, key, errors));
    if (!block.timeout_s)
      errors.add(value, "ASSAY.timeout '" + value.text + "' is no time above 0, such as 120s or 5m");
  } else if (key == "memory_limit") {
    block.memory_limit = parse_bytes(text_of(value, key, errors));
    if (!block.memory_limit)
      errors.add(value, "ASSAY.memory_limit '" + value.text + "' is no size above 0, such as 4GiB");
  } else if (key == "workers_per_device") {
    block.workers_per_device = read_workers_per_device(value, errors);
  } else if (key == "requires") {
    block.requirements = texts_of(value, key, errors);
  } else if (key == "tags") {
    block.tags = texts_of(value, key, errors);
  } else if (key == "waivers") {
    block.waivers = read_waivers(value, errors);
  } else if (key == "metamorphic") {
    block.metamorphic = read_metamorphic_block(value, errors);
  } else {
    errors.add(value, "ASSAY." + key + " is unknown" + did_you_mean(key, kKeys));
  }
}

}  // namespace

void read_assay_block(const YamlNode& node, AssayBlock& block, SchemaErrors& errors) {
  if (node.is_null()) return;
  if (node.kind != YamlNode::Kind::kMap) return errors.add(node, "ASSAY must be a mapping");
  block.present = true;
  for (const YamlEntry& entry : node.entries) read_key(entry, block, errors);
  if (block.golden == GoldenKind::kCharacteristic && !block.known_completion.empty()) {
    errors.add(node, "ASSAY.known_completion needs ASSAY.golden: known_completion");
  }
  if (block.metamorphic && node.find("golden") != nullptr) {
    errors.add(*node.find("golden"),
               "ASSAY.golden and ASSAY.metamorphic exclude each other: a case judged by relations "
               "has no golden; make two cases of it");
  }
}

}  // namespace assay::discover
