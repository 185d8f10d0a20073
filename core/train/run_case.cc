#include "core/train/run_case.h"

#include <fmt/format.h>

#include <filesystem>
#include <fstream>
#include <system_error>
#include <utility>
#include <vector>

#include "core/train/checkpoints.h"
#include "core/train/gradients.h"
#include "core/train/judge_runs.h"
#include "core/train/meeting.h"

namespace assay::train {
namespace {

namespace fs = std::filesystem;

class CaseRun {
 public:
  CaseRun(const CasePlan& plan, const Result<std::string>& golden, const CaseHost& host)
      : plan_(plan),
        golden_(golden),
        host_(host),
        meeting_(plan.meeting, plan.runs.front().nodes, plan.runs.front().node_rank, host.cancelled) {}

  CaseResult run() {
    if (go()) finish();
    if (result_.restarts > 0) report_restarts();
    return std::move(result_);
  }

 private:
  bool settle(Verdict verdict, std::string reason) {
    result_.verdict = {verdict, std::move(reason), "", {}};
    return false;
  }
  bool settle(const Status& status) {
    result_.engine_failed = status.code() == StatusCode::kInfra || status.code() == StatusCode::kCancelled;
    return settle(result_.engine_failed ? Verdict::kInfra : Verdict::kInvalid, status.message());
  }
  void note(const std::string& line) const {
    if (host_.note) host_.note(line);
  }

  bool make_folders() {
    for (const std::string& folder : plan_.made) {
      std::error_code code;
      fs::create_directories(folder, code);
      if (code) return settle(infra(folder + ": " + code.message()));
    }
    if (plan_.type == TestType::kRelease && !plan_.rl) saved_before_ = tracked_iteration(plan_.runs[0].folders.save);
    // What an earlier run left would be taken for this one's. Nodes may share the folders.
    if (plan_.runs.front().node_rank == 0 && plan_.repeat == 1 && !plan_.results.empty()) {
      for (const std::string& file : {plan_.results, second_name(plan_.results)}) {
        std::error_code code;
        if (!fs::exists(file, code)) continue;
        if (Status moved = set_aside(file); !moved.ok()) return settle(moved);
      }
    }
    // Of a release that goes on, what its earlier windows logged is judged with the rest.
    const bool goes_on = saved_before_ > 0 && saved_before_ < plan_.train_iters;
    for (const Job& job : plan_.runs) {
      if (job.node_rank != 0) continue;
      std::error_code code;
      const std::string& events = job.folders.tensorboard;
      if (!goes_on && !is_empty_or_absent(events)) {
        if (Status moved = set_aside(events); !moved.ok()) return settle(moved);
        fs::create_directories(events, code);
        if (code) return settle(infra(events + ": " + code.message()));
      }
      const std::string checkpoint = needed_checkpoint(job);
      if (!checkpoint.empty() && fs::exists(checkpoint, code)) {
        if (Status moved = set_aside(checkpoint); !moved.ok()) return settle(moved);
      }
    }
    return true;
  }

  // Training that TEST_TYPE begins from a checkpoint begins from one. A release begins from nothing in its first
  // window, in a folder that is there or that it saves to.
  bool check_loads() {
    const bool release = plan_.type == TestType::kRelease;
    if (!release && plan_.type != TestType::kFrozenStart && plan_.type != TestType::kCheckpointConsistency) return true;
    for (const Job& job : plan_.runs) {
      std::vector<std::string> folders;
      if (plan_.type != TestType::kCheckpointConsistency) folders.push_back(job.folders.load);
      for (size_t i = 0; i + 1 < job.arguments.size(); ++i) {
        const std::string& folder = job.arguments[i + 1];
        if (job.arguments[i] == "--load" && !plan_.frozen.empty() && folder.starts_with(plan_.frozen)) {
          folders.push_back(folder);
        }
      }
      for (const std::string& folder : folders) {
        std::error_code code;
        const bool first_window = release && (fs::is_directory(folder, code) || folder == job.folders.save);
        if (first_window || fs::is_regular_file(folder, code) || !is_empty_or_absent(folder)) continue;
        return settle(
            Verdict::kInvalid,
            fmt::format("run {}: {} holds no checkpoint to load, it is {}: see CHECKPOINT_LOAD_PATH and --load",
                        job.run, folder, fs::exists(folder, code) ? "empty" : "not there"));
      }
    }
    return true;
  }

  // The iteration folder that has to come from this run: it is judged, or resumed from. Empty: there is none.
  std::string needed_checkpoint(const Job& job) const {
    const bool resumed = plan_.type == TestType::kCkptResume && job.run == 1;
    if (plan_.rl || (!resumed && plan_.type != TestType::kCheckpointConsistency)) return "";
    return (fs::path(job.folders.save) / iteration_name(resumed ? plan_.train_iters / 2 : 1)).string();
  }

  // One run of the program on all nodes. False: it failed, and the verdict says so.
  bool train(const Job& job) {
    const std::string phase = fmt::format("repeat_{}_run_{}", plan_.repeat, job.run);
    if (Status met = meeting_.wait(phase + "_start"); !met.ok()) return settle(met);
    const Result<RunEnd> end = host_.train(job);
    const int code = !end ? 1 : end->ok() ? 0 : end->exit_code > 0 ? end->exit_code : 1;
    const Result<int> all = meeting_.exchange(phase, code);
    if (end) result_.restarts += end->restarts;
    if (!end) {
      const bool blamed = end.status().code() == StatusCode::kInvalid || end.status().code() == StatusCode::kNotFound ||
                          end.status().code() == StatusCode::kUnsupported;
      result_.engine_failed = !blamed;
      return settle(blamed ? Verdict::kInvalid : Verdict::kInfra,
                    fmt::format("run {}: {}", job.run, end.status().message()));
    }
    if (!end->ok()) {
      result_.engine_failed = true;
      const std::string how = end->signal != 0
                                  ? fmt::format("signal {} ended the training program", end->signal)
                                  : fmt::format("the training program ended with exit code {}", end->exit_code);
      return settle(Verdict::kCrashed,
                    fmt::format("run {}: {}{}", job.run, end->message.empty() ? how : end->message,
                                end->restarts > 0 ? fmt::format(" ({} restarts)", end->restarts) : ""));
    }
    if (!all) return settle(all.status());
    if (*all != 0) {
      result_.engine_failed = true;
      return settle(Verdict::kCrashed, fmt::format("run {}: another node failed with exit code {}", job.run, *all));
    }
    if (Status met = meeting_.wait(phase + "_end"); !met.ok()) return settle(met);
    return true;
  }

  // The runs, one after the other. False: there is a verdict already.
  bool go() {
    result_.compat = {plan_.xpass ? CompatVerdict::kPassed : CompatVerdict::kFailed, "Training failed."};
    if (!check_loads() || !make_folders()) return false;
    if (Status met = meeting_.wait(fmt::format("repeat_{}_start", plan_.repeat)); !met.ok()) return settle(met);
    for (size_t i = 0; i < plan_.runs.size(); ++i) {
      if (host_.cancelled && host_.cancelled()) return settle({StatusCode::kCancelled, "cancelled"});
      if (i > 0 && plan_.resumes() && !before_second()) return false;
      if (!train(plan_.runs[i])) return false;
    }
    return true;
  }

  bool before_second() {
    if (plan_.type == TestType::kFrozenResume) {
      if (!is_empty_or_absent(plan_.frozen)) return true;
      result_.compat = {CompatVerdict::kSkipped, "No frozen checkpoint found."};
      return settle(Verdict::kNotComparable, plan_.frozen +
                                                 ": no frozen checkpoint to resume from; make one with "
                                                 "RECORD_CHECKPOINTS=true");
    }
    const Status made = make_resume_view(plan_.runs[0].folders.save, plan_.train_iters / 2, plan_.runs[1].folders.load);
    return made.ok() || settle(made);
  }

  // A recorded checkpoint says of itself that it stands in the middle, for frozen-resume to go on from there.
  Status track_the_middle() const {
    const fs::path path = fs::path(plan_.runs[0].folders.save) / "latest_checkpointed_iteration.txt";
    std::ofstream tracker(path);
    tracker << plan_.train_iters / 2 << "\n";
    tracker.close();
    return tracker ? Status()
                   : infra(path.string() +
                           ": cannot be written: the recorded checkpoint does not say that frozen-resume "
                           "goes on from its middle");
  }

  void finish() {
    result_.compat = {CompatVerdict::kPassed, "nothing failed"};
    if (plan_.record && plan_.type == TestType::kFrozenResume) {
      if (Status tracked = track_the_middle(); !tracked.ok()) {
        settle(tracked);
        return;
      }
    }
    if (!plan_.uncompared.empty()) {
      result_.compat = {CompatVerdict::kSkipped, plan_.uncompared};
      settle(Verdict::kSkipped, fmt::format("{}: the training ended well, nothing was compared", plan_.uncompared));
      return;
    }
    const Job& first = plan_.runs.front();
    if (plan_.type == TestType::kRelease && !plan_.rl) {
      const int64_t reached = tracked_iteration(first.folders.save);
      if (reached < plan_.train_iters && reached <= saved_before_) {
        result_.compat = {CompatVerdict::kSkipped, "Release intermediate window."};
        settle(Verdict::kInvalid,
               fmt::format("release: the program saved nothing: {} says step {} of {}, as before the run",
                           first.folders.save, reached, plan_.train_iters));
        return;
      }
      if (reached < plan_.train_iters) {
        result_.compat = {CompatVerdict::kSkipped, "Release intermediate window."};
        settle(Verdict::kSkipped, fmt::format("release: step {} of {} is saved, so far nothing is to be compared",
                                              reached, plan_.train_iters));
        return;
      }
    }
    if (first.node_rank != 0) {
      result_.compat = {CompatVerdict::kSkipped, "node 0 compares"};
      settle(Verdict::kSkipped, fmt::format("node {} of {}: node 0 judges", first.node_rank, first.nodes));
      return;
    }
    if (host_.judging) host_.judging();
    if (plan_.type == TestType::kCheckpointConsistency && !plan_.rl) {
      judge_gradients(plan_, &result_);
    } else {
      judge_runs(plan_, golden_, &result_);
    }
  }

  void report_restarts() {
    const std::string line =
        fmt::format("{}: {} restarted the program {} time{}", plan_.name, plan_.runs.front().launcher, result_.restarts,
                    result_.restarts == 1 ? "" : "s");
    note(line);
    result_.verdict.environment.push_back(line);
  }

  const CasePlan& plan_;
  const Result<std::string>& golden_;
  const CaseHost& host_;
  Meeting meeting_;
  CaseResult result_;
  int64_t saved_before_ = 0;  // iteration that a release had saved before this run; 0: nothing, or no release
};

}  // namespace

CaseResult run_case(const CasePlan& plan, const Result<std::string>& golden, const CaseHost& host) {
  return CaseRun(plan, golden, host).run();
}

}  // namespace assay::train
