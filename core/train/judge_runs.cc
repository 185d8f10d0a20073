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

// As Megatron-LM's reader sees the folder: simple values, up to where a file is damaged. Nothing: its script fails.
std::optional<MetricSet> as_theirs(const std::string& folder, const Grid& grid) {
  const Result<std::vector<EventFile>> files = read_event_folder(folder, ScalarForms::kSimple);
  if (!files) return std::nullopt;
  std::vector<EventFile> whole = *files;
  std::erase_if(whole, [](const EventFile& file) { return file.tags.empty(); });
  if (whole.empty()) return std::nullopt;
  MetricSet set = extract(whole, grid);
  for (const Metric& metric : set.metrics) {  // its writer refuses numbers that JSON lacks
    if (std::any_of(metric.values.begin(), metric.values.end(), [](const StepValue& v) { return !v.finite(); })) {
      return std::nullopt;
    }
  }
  return set;
}

std::string second_name(const std::string& path) {
  fs::path file(path);
  const std::string ending = file.extension().string();
  file.replace_filename(file.stem().string() + "_2nd" + ending);
  return file.string();
}

Status write(const MetricSet& set, const CasePlan& plan, bool second) {
  const std::string own = (fs::path(plan.folder) / "actual.json").string();
  if (Status done = write_metrics(second ? second_name(own) : own, set); !done.ok()) return done;
  if (plan.results.empty()) return {};
  return write_metrics(second ? second_name(plan.results) : plan.results, set);
}

CompatVerdict both(CompatVerdict first, const CompatVerdict& second) { return first.passes() ? second : first; }

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
  Judge(const CasePlan& plan, CaseResult* result) : plan_(plan), result_(*result), grid_(grid_of(plan)) {}

  void run(const Result<std::string>& golden) {
    if (!take(0, &result_.actual)) return;
    if (plan_.resumes() && !plan_.rl && !take(1, &result_.second)) return;
    by_golden(golden);
    if (result_.second) by_first_run();
    for (const std::optional<MetricSet>* set : {&result_.actual, &result_.second}) {
      if (*set) add_notes((*set)->notes);
    }
  }

 private:
  // The values of run `index`; false: there are none, and the verdict says why.
  bool take(size_t index, std::optional<MetricSet>* set) {
    const Job& job = plan_.runs[index];
    Result<MetricSet> read = extract_folder(job.folders.tensorboard, grid_, ScalarForms::kAll);
    if (!read) {
      const Verdict verdict = read.status().code() == StatusCode::kInfra ? Verdict::kInfra : Verdict::kInvalid;
      result_.verdict = {verdict, fmt::format("run {}: {}", job.run, read.status().message()), "", {}};
      result_.compat = compat_unreadable("the values of run " + std::to_string(job.run));
      return false;
    }
    *set = *std::move(read);
    if (Status written = write(**set, plan_, index > 0); !written.ok()) {
      result_.verdict = {Verdict::kInfra, written.message(), "", {}};
      result_.compat = compat_unreadable(written.message());
      return false;
    }
    return true;
  }

  void by_golden(const Result<std::string>& golden) {
    if (!golden) {
      result_.verdict = {Verdict::kNotComparable, golden.status().message(), "", {}};
      result_.compat = compat_unreadable(golden.status().message());
      return;
    }
    const Result<MetricSet> reference = read_metrics(*golden);
    if (!reference) {
      const bool missing = reference.status().code() == StatusCode::kNotFound;
      result_.verdict = {missing ? Verdict::kNotComparable : Verdict::kInvalid,
                         "golden: " + reference.status().message(),
                         *golden,
                         {}};
      const Result<MetricSet> loose = read_metrics(*golden, Schema::kLoose);
      result_.compat = plan_.rl && loose ? by_rl(*loose) : compat_unreadable(reference.status().message());
      return;
    }
    result_.verdict = judge(*reference, *result_.actual, plan_.rules());
    result_.verdict.golden = *golden;
    if (plan_.rl) {
      result_.compat = by_rl(*reference);
    } else if (const std::optional<MetricSet> theirs = as_theirs(plan_.runs[0].folders.tensorboard, grid_)) {
      result_.compat = compat_pretraining(*reference, *theirs, plan_.compat_metrics(), plan_.nondeterministic);
    } else {
      result_.compat = compat_unreadable("the values of run 1");
    }
  }

  CompatVerdict by_rl(const MetricSet& golden) const {
    if (plan_.type != TestType::kFrozenStart) {
      return {CompatVerdict::kSkipped, "TEST_TYPE is not frozen-start: nothing is compared"};
    }
    const std::optional<MetricSet> theirs = as_theirs(plan_.runs[0].folders.tensorboard, grid_);
    if (!theirs) return compat_unreadable("the values of run 1");
    return compat_rl(golden, *theirs, plan_.compat_metrics(), plan_.throughput_start);
  }

  void by_first_run() {
    JudgeRules rules = plan_.rules();
    rules.reference = "run 1";
    add(judge_resume(*result_.actual, *result_.second, plan_.train_iters, rules), &result_.verdict);
    const std::optional<MetricSet> first = as_theirs(plan_.runs[0].folders.tensorboard, grid_);
    const std::optional<MetricSet> second = as_theirs(plan_.runs[1].folders.tensorboard, grid_);
    result_.compat =
        both(result_.compat, first && second ? compat_resume(*first, *second, plan_.train_iters, plan_.compat_metrics(),
                                                             plan_.nondeterministic)
                                             : compat_unreadable("the values of run 2"));
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
  const Grid grid_;
};

}  // namespace

void judge_runs(const CasePlan& plan, const Result<std::string>& golden, CaseResult* result) {
  Judge(plan, result).run(golden);
}

}  // namespace assay::train
