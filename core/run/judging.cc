#include "core/run/judging.h"

#include <map>
#include <utility>

#include "core/compare/judge.h"

namespace assay::run {

CaseVerdict judge_results(const Judging& judging, const ResultSet& actual) {
  const WorkerPlan& plan = *judging.plan;
  const CaseOrder& order = *judging.order;
  std::map<std::string, std::string> unusable;  // metric -> why its comparator cannot be used
  compare::JudgeOptions options;
  options.metrics = order.metrics;
  options.tolerances = order.tolerances;
  options.known.enabled = order.known_completion;
  options.known.sources = order.known_sources;
  options.capabilities = judging.engine->capabilities;
  options.lookup = [&](std::string_view metric) -> const assay_comparator_table* {
    const Result<const plugin::Plugin*> comparator = judging.registry->find_metric_comparator(metric);
    if (comparator) return (*comparator)->comparator();
    unusable.emplace(metric, comparator.status().message());
    return nullptr;
  };
  compare::JudgeInput input{.options = &options,
                            .golden = nullptr,
                            .golden_missing = "",
                            .actual = &actual,
                            .rerun = judging.rerun,
                            .no_rerun = judging.no_rerun,
                            .provenance = judging.provenance};
  ResultSet golden;
  const Result<GoldenChoice> file = resolve_golden(order.dir, plan.environment_name, plan.platform);
  if (!file) {
    if (file.status().code() != StatusCode::kNotFound) return {Verdict::kInvalid, file.status().message(), "", {}};
    input.golden_missing = file.status().message();
  } else {
    Result<ResultSet> read = read_results(file->path);
    if (!read) return {Verdict::kInvalid, read.status().message(), file->path, {}};
    golden = *std::move(read);
    input.golden = &golden;
  }
  CaseVerdict verdict = compare::judge_case(input);
  for (MetricVerdict& metric : verdict.metrics) {
    const auto reason = unusable.find(metric.metric);
    if (reason == unusable.end()) continue;
    Finding finding;
    finding.verdict = Verdict::kNotComparable;
    finding.note = true;
    finding.message = reason->second;
    metric.findings.push_back(std::move(finding));
  }
  return verdict;
}

}  // namespace assay::run
