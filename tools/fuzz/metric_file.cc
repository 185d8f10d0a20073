// Golden files of training cases: what is written reads back as it was.
#include "core/train/metric_file.h"

#include "tools/fuzz/fuzz.h"

namespace {

bool same(const assay::train::Metric& a, const assay::train::Metric& b) {
  if (a.name != b.name || a.values.size() != b.values.size()) return false;
  for (size_t i = 0; i < a.values.size(); ++i) {
    if (a.values[i].step != b.values[i].step || a.values[i].finite() != b.values[i].finite()) return false;
    if (a.values[i].finite() && a.values[i].value != b.values[i].value) return false;
  }
  return true;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace assay::train;
  const std::string_view text = assay::fuzz::text_of(data, size);
  const auto loose = read_metrics_text(text, "f", Schema::kLoose);
  if (!loose) assay::fuzz::require_message(loose.status().message());
  const auto set = read_metrics_text(text, "f");
  if (!set) {
    assay::fuzz::require_message(set.status().message());
    return 0;
  }
  assay::fuzz::require(loose.ok(), "what reads strictly reads loosely");
  const auto again = read_metrics_text(metrics_text(*set), "f");
  assay::fuzz::require(again.ok(), "what is written can be read");
  assay::fuzz::require(again->metrics.size() == set->metrics.size(), "as many metrics");
  for (size_t i = 0; i < set->metrics.size(); ++i) {
    assay::fuzz::require(same(set->metrics[i], again->metrics[i]), "a metric reads back as it was");
  }
  return 0;
}
