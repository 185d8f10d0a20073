#include "core/train/compare_files.h"

#include <filesystem>
#include <utility>

#include "core/train/arguments.h"
#include "core/train/case_plan.h"
#include "core/train/extract.h"
#include "core/train/metric_file.h"
#include "core/train/thresholds.h"

namespace assay::train {
namespace {

Result<MetricSet> read_actual(const TestCase& test, const CasePlan& facts, const std::string& actual) {
  std::error_code code;
  if (!std::filesystem::is_directory(actual, code)) return read_metrics(actual);
  ModelArgs args = test.model_args;
  const Result<int64_t> iters = change_arguments({.rl = facts.rl, .type = facts.type}, test.config, &args);
  if (!iters) return iters.status();
  const Grid grid = facts.type == TestType::kRelease ? convergence_grid(*iters) : Grid{.train_iters = *iters};
  return extract_folder(actual, grid);
}

// Of files that our own schema refuses.
CompatVerdict compat_rl_files(const std::string& golden, const std::string& actual, const CasePlan& facts) {
  const Result<MetricSet> reference = read_metrics(golden, Schema::kLoose);
  const Result<MetricSet> candidate = read_metrics(actual, Schema::kLoose);
  if (!reference || !candidate) return compat_unreadable((!reference ? reference : candidate).status().message());
  return compat_rl(*reference, *candidate, facts.compat_metrics(), facts.throughput_start);
}

// Metrics of a training alone, those apart that generation has too.
bool trains(const std::string& metric) {
  const std::string_view known = table_name(metric);
  const std::string_view name = known.empty() ? metric : known;
  return name.ends_with(" loss") || name == "num-zeros" || name == "iteration-time";
}

}  // namespace

bool compares_training(const TestCase& test, const std::string& golden) {
  if (test.mode == "inference") return false;
  for (const std::string& metric : test.metrics.value_or(std::vector<std::string>())) {
    if (trains(metric)) return true;
  }
  const bool says_mode = test.config_text.starts_with("MODE:") || test.config_text.find("\nMODE:") != std::string::npos;
  if (says_mode) return true;
  const Result<MetricSet> read = read_metrics(golden);
  return read && !read->metrics.empty();
}

ComparedFiles compare_files(const TestCase& test, const std::string& golden, const std::string& actual) {
  ComparedFiles compared;
  const CasePlan facts = facts_of(test);
  const auto refuse = [&](const Status& status, const char* what) {
    const bool missing = status.code() == StatusCode::kNotFound && std::string_view(what) == "golden";
    compared.verdict = {missing ? Verdict::kNotComparable : Verdict::kInvalid, status.with(what).message(), golden, {}};
    compared.compat = facts.rl ? compat_rl_files(golden, actual, facts) : compat_unreadable(status.message());
    return std::move(compared);
  };
  const Result<MetricSet> reference = read_metrics(golden);
  if (!reference) return refuse(reference.status(), "golden");
  const Result<MetricSet> candidate = read_actual(test, facts, actual);
  if (!candidate) return refuse(candidate.status(), "result");
  if (const Result<JudgeRules> rules = facts.rules()) {
    compared.verdict = judge(*reference, *candidate, *rules);
  } else {
    compared.verdict = {Verdict::kInvalid, rules.status().message(), "", {}};
  }
  compared.verdict.golden = golden;
  compared.compat = facts.rl
                        ? compat_rl(*reference, *candidate, facts.compat_metrics(), facts.throughput_start)
                        : compat_pretraining(*reference, *candidate, facts.compat_metrics(), facts.nondeterministic);
  return compared;
}

}  // namespace assay::train
