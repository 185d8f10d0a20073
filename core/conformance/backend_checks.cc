#include <fmt/format.h>

#include "core/conformance/findings.h"
#include "core/conformance/lent.h"

namespace assay::conformance {
namespace {

void describe(const Subject& subject, Findings& findings) {
  const assay_backend_table& table = *subject.plugin.backend();
  auto info = sdk::sized<assay_backend_info>();
  const Called called = call(findings, "describe", table.describe, &info);
  if (!called.ok()) return;
  findings.expect(!sdk::text(info.device).empty() && one_line(sdk::text(info.device)),
                  "describe: device is empty or no line; name the device, or the reason why there is none");
  findings.expect(sdk::text(info.device_indices).empty() || !sdk::text(info.device_variable).empty(),
                  "describe: device_indices without device_variable");
  Lent lent("the info struct of a host of ABI 1.0");
  auto small = sdk::sized<assay_backend_info>();
  small.size = offsetof(assay_backend_info, device_variable);
  auto* cut = lent.cut(small, small.size);
  const Called older = call(findings, "describe for a host of ABI 1.0", table.describe, cut);
  findings.expect(older.ok() && cut->usable == info.usable, "describe for a host of ABI 1.0: " + older.text());
}

void refuses(const Subject& subject, Findings& findings) {
  const assay_backend_table& table = *subject.plugin.backend();
  for (const char* config : {"", "no JSON", "{}", "[]"}) {
    Lent lent("the source of open");
    auto source = sdk::sized<assay_model_source>();
    source.config_json = lent.put(config);
    source.checkpoint = lent.put("/nonexistent/checkpoint");
    source.options = lent.put("{}");
    const auto* place = lent.object(source);
    lent.lock();
    void* model = nullptr;
    const Called called = call(findings, fmt::format("open of a model '{}'", config), table.open, place, &model);
    findings.expect(!called.ok(), fmt::format("open: a model config '{}' and no checkpoint are accepted", config));
  }
}

void arithmetic(const Subject&, Findings& findings) {
  findings.not_checked(
      "models: they need a checkpoint; `assay run`, `assay bench` and the metamorphic relations look at them");
}

}  // namespace

std::vector<Check> backend_checks() {
  return {{"describe", describe}, {"refusals", refuses}, {"arithmetic", arithmetic}};
}

}  // namespace assay::conformance
