#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <nlohmann/json.hpp>

#include "core/conformance/engine_checks.h"

namespace assay::conformance {
namespace {

using nlohmann::json;

constexpr uint64_t kKnownCapabilities = (uint64_t{ASSAY_CAP_TRAIN} << 1) - 1;

void texts(const Subject& subject, Findings& findings) {
  const plugin::Plugin& plugin = subject.plugin;
  for (const auto& [name, text] :
       {std::pair("version", &plugin.version), std::pair("description", &plugin.description)}) {
    findings.expect(!text->empty() && text->size() <= 200 && one_line(*text),
                    fmt::format("{} of the descriptor is '{}', expected one line of 1 to 200 bytes", name, *text));
  }
  findings.expect(plugin.name.size() <= 64, "name of the descriptor is longer than 64 bytes");
}

void capability_bits(const Subject& subject, Findings& findings) {
  const plugin::Plugin& plugin = subject.plugin;
  if (plugin.abi_minor <= ASSAY_ABI_MINOR) {
    findings.expect((plugin.capabilities & ~kKnownCapabilities) == 0,
                    fmt::format("capability bits {:#x} that ABI {}.{} does not have",
                                plugin.capabilities & ~kKnownCapabilities, plugin.abi_major, plugin.abi_minor));
  }
  if (plugin.kind != plugin::Kind::kEngine) return;
  findings.expect(plugin.can(ASSAY_CAP_TRAIN) || (plugin.capabilities & (ASSAY_CAP_TEXT | ASSAY_CAP_TOKENS)) != 0,
                  "an engine that gives neither text nor tokens nor training: nothing could be judged");
  findings.expect(!plugin.can(ASSAY_CAP_PROMPT_LOGPROBS) || plugin.can(ASSAY_CAP_LOGPROBS),
                  "prompt logprobs without logprobs");
  findings.expect(!(plugin.can(ASSAY_CAP_RECORDED) && plugin.can(ASSAY_CAP_NEEDS_BACKEND)),
                  "recorded results and a backend: an engine that reads results does no arithmetic");
  findings.expect(!plugin.can(ASSAY_CAP_RECORDED) || (plugin.capabilities & plugin::kLevels) == 0,
                  "recorded results and levels of determinism: who computes nothing can promise nothing");
}

bool known_type(const json& type) {
  constexpr std::array kTypes = {"string", "integer", "number", "boolean", "array", "object", "null"};
  const auto known = [&](const json& one) {
    return one.is_string() && std::find(kTypes.begin(), kTypes.end(), one.get<std::string>()) != kTypes.end();
  };
  return type.is_array() ? std::all_of(type.begin(), type.end(), known) : known(type);
}

void schema(const Subject& subject, Findings& findings) {
  const json parsed = json::parse(subject.plugin.options_schema, nullptr, false);
  if (!findings.expect(parsed.is_object(), "options_schema is not a JSON object: " + subject.plugin.options_schema))
    return;
  if (subject.plugin.kind == plugin::Kind::kBackend || subject.plugin.kind == plugin::Kind::kComparator) {
    findings.expect(!parsed.contains("type") || parsed["type"] == "object", "options_schema: type is not object");
  } else {
    findings.expect(parsed.value("type", json()) == "object", "options_schema: expected \"type\": \"object\"");
  }
  const json properties = parsed.value("properties", json::object());
  if (!findings.expect(properties.is_object(), "options_schema: properties is not an object")) return;
  for (const auto& [name, property] : properties.items()) {
    const bool whole = property.is_object() || property.is_boolean();
    findings.expect(whole, fmt::format("options_schema: property {} is not a schema", name));
    if (!whole || !property.is_object() || !property.contains("type")) continue;
    findings.expect(known_type(property["type"]),
                    fmt::format("options_schema: property {} has type {}", name, property["type"].dump()));
  }
  for (const json& name : parsed.value("required", json::array())) {
    findings.expect(name.is_string() && properties.contains(name.get<std::string>()),
                    "options_schema: required names " + name.dump() + ", which is no property");
  }
}

uint32_t smallest_table(plugin::Kind kind) {
  switch (kind) {
    case plugin::Kind::kEngine:
      return sizeof(assay_engine_table);
    case plugin::Kind::kBackend:
      return sizeof(assay_backend_table);
    case plugin::Kind::kComparator:
      return sizeof(assay_comparator_table);
    case plugin::Kind::kLauncher:
      return sizeof(assay_launcher_table);
  }
  return 0;
}

void table(const Subject& subject, Findings& findings) {
  const auto size = *static_cast<const uint32_t*>(subject.plugin.table);
  findings.expect(size % sizeof(void*) == 0,
                  fmt::format("`size` of its table is {}, expected a multiple of {}", size, sizeof(void*)));
  if (subject.plugin.abi_minor == ASSAY_ABI_MINOR) {
    findings.expect(size == smallest_table(subject.plugin.kind),
                    fmt::format("`size` of its table is {}, expected {} of ABI {}.{}", size,
                                smallest_table(subject.plugin.kind), ASSAY_ABI_MAJOR, ASSAY_ABI_MINOR));
  }
}

}  // namespace

std::vector<Check> descriptor_checks() {
  return {{"texts", texts},
          {"capability bits", capability_bits},
          {"options schema", schema},
          {"table", table},
          {"versions", check_query}};
}

}  // namespace assay::conformance
