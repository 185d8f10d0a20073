#include <fmt/format.h>

#include <functional>
#include <nlohmann/json.hpp>

#include "core/conformance/engine_checks.h"
#include "core/conformance/engine_under_test.h"
#include "core/conformance/launcher_under_test.h"

namespace assay::conformance {
namespace {

using nlohmann::json;

// Opens with these options, and closes again what was opened.
using OpenAndClose = std::function<Called(const std::string& options)>;

void expect_refused(Findings& findings, const OpenAndClose& open, const std::string& options, const std::string& what) {
  const Called called = open(options);
  if (!findings.expect(!called.ok(),
                       fmt::format("{}: options {} are accepted, expected INVALID", what, options.substr(0, 200))))
    return;
  findings.expect(called.code == ASSAY_INVALID || called.code == ASSAY_UNSUPPORTED || called.code == ASSAY_NOT_FOUND,
                  fmt::format("{}: options {}: {}, expected INVALID", what, options.substr(0, 200), called.text()));
}

// A value that the property's schema does not allow; null where none is known.
json wrong_value(const json& property) {
  const auto type = property.find("type");
  if (property.contains("enum")) return "no such choice";
  if (type == property.end() || !type->is_string()) return nullptr;
  if (*type == "string") return json::object();
  return "a word";  // for integer, number, boolean, array, object
}

void check_options(const Subject& subject, Findings& findings, const OpenAndClose& open) {
  const json base = json::parse(subject.options.options, nullptr, false);
  const json schema = json::parse(subject.plugin.options_schema, nullptr, false);
  for (const char* broken : {"[]", "nonsense", "{", "null", "3", R"({"a":})"})
    expect_refused(findings, open, broken, "no JSON object");
  if (!schema.is_object()) return;
  if (schema.value("additionalProperties", json(true)) == json(false)) {
    json unknown = base;
    unknown["no_such_option"] = 1;
    expect_refused(findings, open, unknown.dump(), "an option that the schema does not have");
  } else {
    findings.not_checked("unknown options: options_schema allows them (additionalProperties is not false)");
  }
  const bool opens = open(base.dump()).ok();
  if (!opens) findings.not_checked("options that are in order: open refuses those of the kit (--options)");
  const json properties = schema.value("properties", json::object());
  for (const auto& [name, property] : properties.items()) {
    if (!property.is_object()) continue;
    const json wrong = wrong_value(property);
    json options = base;
    options[name] = wrong;
    if (!wrong.is_null()) expect_refused(findings, open, options.dump(), "a value that the schema does not allow");
    if (property.contains("minimum") && property["minimum"].is_number_integer()) {
      options[name] = property["minimum"].get<int64_t>() - 1;
      expect_refused(findings, open, options.dump(), "a value below its minimum");
    }
    if (opens && property.contains("default")) {
      options[name] = property["default"];
      const Called called = open(options.dump());
      findings.expect(called.ok(),
                      fmt::format("the default of option {}, {}: {}", name, property["default"].dump(), called.text()));
    }
  }
}

}  // namespace

void check_engine_options(const Subject& subject, Findings& findings) {
  check_options(subject, findings, [&](const std::string& options) {
    auto model = make_model();
    const Opening opening = open_engine(subject, findings, options, model.get());
    if (opening.engine != nullptr) subject.plugin.engine()->close(opening.engine);
    return opening.called;
  });
}

void check_launcher_options(const Subject& subject, Findings& findings) {
  check_options(subject, findings, [&](const std::string& options) {
    LauncherUnderTest launcher(subject, findings, options);
    return launcher.opening();
  });
}

}  // namespace assay::conformance
