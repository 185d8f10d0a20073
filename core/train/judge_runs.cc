#include "core/train/judge_runs.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <utility>

#include "core/train/extract.h"
#include "core/train/metric_file.h"

namespace assay::train {
namespace {

namespace fs = std::filesystem;

Grid grid_of(const CasePlan& plan) {
  return plan.type == TestType::kRelease ? convergence_grid(plan.train_iters) : Grid{.train_iters = plan.train_iters};
}

// What a run logged, read once.
struct RunValues {
  Result<MetricSet> ours;
  std::optional<MetricSet> theirs;  // as Megatron-LM's reader sees it; nothing: its script fails
};

RunValues read_run(const Job& job, const Grid& grid) {
  const Result<std::vector<EventFile>> files = read_event_folder(job.folders.tensorboard);
  if (!files) return {files.status(), std::nullopt};
  return {extract(*files, grid), extract_as_megatron(*files, grid)};
}

Status write(const MetricSet& set, const CasePlan& plan, bool second) {
  const std::string own = (fs::path(plan.folder) / "actual.json").string();
  if (Status done = write_metrics(second ? second_name(own) : own, set); !done.ok()) return done;
  if (plan.results.empty()) return {};
  return write_metrics(second ? second_name(plan.results) : plan.results, set);
}

// Adds the verdict of run 2 against run 1.
void add(CaseVerdict&& other, CaseVerdict* verdict) {
  if (worst(verdict->verdict, other.verdict) != verdict->verdict) verdict->reason = other.reason;
  verdict->verdict = worst(verdict->verdict, other.verdict);
  for (MetricVerdict& metric : other.metrics) {
    metric.metric += " (run 2)";
    verdict->metrics.push_back(std::move(metric));
  }
}

class Judge {
 public:
  Judge(const CasePlan& plan, CaseResult* result) : plan_(plan), result_(*result) {
    const Grid grid = grid_of(plan);
    runs_.push_back(read_run(plan.runs[0], grid));
    if (plan.resumes() && !plan.rl) runs_.push_back(read_run(plan.runs[1], grid));
  }

  void run(const Result<std::string>& golden) {
    const Result<MetricSet> reference = golden ? read_metrics(*golden) : golden.status();
    result_.compat = compat(golden, reference);
    for (size_t i = 0; i < runs_.size(); ++i) {
      if (!keep(i)) return;
    }
    by_golden(golden, reference);
    for (const RunValues& values : runs_) add_notes(values.ours->notes);
  }

 private:
  void settle(Verdict verdict, std::string reason, std::string golden = "") {
    result_.verdict = {verdict, std::move(reason), std::move(golden), {}};
  }

  // Writes the values of a run. False: there are none, or they cannot be written, and the verdict says why.
  bool keep(size_t index) {
    const Result<MetricSet>& values = runs_[index].ours;
    if (!values) {
      const Verdict verdict = values.status().code() == StatusCode::kInfra ? Verdict::kInfra : Verdict::kInvalid;
      settle(verdict, fmt::format("run {}: {}", plan_.runs[index].run, values.status().message()));
      return false;
    }
    if (Status written = write(*values, plan_, index > 0); !written.ok()) {
      settle(Verdict::kInfra, written.message());
      return false;
    }
    (index == 0 ? result_.actual : result_.second) = *values;
    return true;
  }

  void by_golden(const Result<std::string>& golden, const Result<MetricSet>& reference) {
    Result<JudgeRules> rules = plan_.rules();
    if (!rules) return settle(Verdict::kInvalid, rules.status().message());
    if (!golden) {
      settle(Verdict::kNotComparable, golden.status().message());
    } else if (!reference) {
      const bool missing = reference.status().code() == StatusCode::kNotFound;
      settle(missing ? Verdict::kNotComparable : Verdict::kInvalid, "golden: " + reference.status().message(), *golden);
    } else {
      result_.verdict = judge(*reference, *result_.actual, *rules);
      result_.verdict.golden = *golden;
    }
    if (!result_.second) return;
    rules->reference = "run 1";
    add(judge_resume(*result_.actual, *result_.second, plan_.train_iters, *rules), &result_.verdict);
  }

  // What Megatron-LM's comparators say of their own view of the same files.
  CompatVerdict compat(const Result<std::string>& golden, const Result<MetricSet>& reference) const {
    if (!golden) return compat_unreadable(golden.status().message());
    const std::optional<MetricSet>& first = runs_.front().theirs;
    if (plan_.rl) {
      const Result<MetricSet> loose = reference ? *reference : read_metrics(*golden, Schema::kLoose);
      if (!loose) return compat_unreadable(loose.status().message());
      if (plan_.type != TestType::kFrozenStart) {
        return {CompatVerdict::kSkipped, "TEST_TYPE is not frozen-start: nothing is compared"};
      }
      if (!first) return compat_unreadable("the values of run 1");
      return compat_rl(*loose, *first, plan_.compat_metrics(), plan_.throughput_start);
    }
    if (!reference) return compat_unreadable(reference.status().message());
    if (!first) return compat_unreadable("the values of run 1");
    CompatVerdict by_golden = compat_pretraining(*reference, *first, plan_.compat_metrics(), plan_.nondeterministic);
    if (runs_.size() == 1 || !by_golden.passes()) return by_golden;
    const std::optional<MetricSet>& second = runs_.back().theirs;
    if (!second) return compat_unreadable("the values of run 2");
    return compat_resume(*first, *second, plan_.train_iters, plan_.compat_metrics(), plan_.nondeterministic);
  }

  void add_notes(const std::vector<std::string>& notes) {
    for (const std::string& line : notes) {
      Finding found;
      found.verdict = Verdict::kIdentical;
      found.note = true;
      found.message = line;
      if (result_.verdict.metrics.empty()) result_.verdict.metrics.push_back({"event files", Verdict::kIdentical, {}});
      result_.verdict.metrics.front().findings.push_back(std::move(found));
    }
  }

  const CasePlan& plan_;
  CaseResult& result_;
  std::vector<RunValues> runs_;  // run 1, and run 2 where one resumed
};

}  // namespace

std::string second_name(const std::string& path) {
  fs::path file(path);
  const std::string ending = file.extension().string();
  file.replace_filename(file.stem().string() + "_2nd" + ending);
  return file.string();
}

void judge_runs(const CasePlan& plan, const Result<std::string>& golden, CaseResult* result) {
  Judge(plan, result).run(golden);
}

}  // namespace assay::train
