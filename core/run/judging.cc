#include "core/run/judging.h"

#include "core/compare/judge.h"

namespace assay::run {

CaseVerdict judge_results(const Judging& judging, const ResultSet& actual) {
  const WorkerPlan& plan = *judging.plan;
  const CaseOrder& order = *judging.order;
  compare::JudgeOptions options;
  options.metrics = order.metrics;
  options.tolerances = order.tolerances;
  options.known.enabled = order.known_completion;
  options.known.sources = order.known_sources;
  if (order.max_new_tokens > 0) options.most_tokens = static_cast<uint64_t>(order.max_new_tokens);
  options.capabilities = judging.about->capabilities;
  options.found_out = judging.about->facts;
  options.lookup = [&](std::string_view metric) { return judging.registry->comparator_table(metric); };
  compare::JudgeInput input{.options = &options,
                            .golden = nullptr,
                            .golden_missing = "",
                            .actual = &actual,
                            .rerun = judging.rerun,
                            .no_rerun = judging.no_rerun,
                            .provenance = judging.provenance};
  ResultSet golden;
  const Result<GoldenChoice> file = order.golden.empty()
                                        ? resolve_golden(order.dir, plan.environment_name, plan.platform)
                                        : GoldenChoice{.path = order.golden, .exact = true};
  if (!file) {
    if (file.status().code() != StatusCode::kNotFound) return {Verdict::kInvalid, file.status().message(), "", {}};
    input.golden_missing = file.status().message();
  } else {
    Result<ResultSet> read = read_results(file->path);
    if (!read) return {Verdict::kInvalid, read.status().message(), file->path, {}};
    golden = *std::move(read);
    input.golden = &golden;
  }
  return compare::judge_case(input);
}

}  // namespace assay::run
