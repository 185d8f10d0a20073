#include "core/run/case_runner.h"

#include <fmt/format.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <system_error>
#include <utility>

#include "core/compare/same_results.h"
#include "core/run/case_runner_parts.h"
#include "core/run/case_time.h"
#include "core/run/deterministic_mode.h"
#include "core/run/events.h"
#include "core/run/foreign_case.h"
#include "core/run/process.h"
#include "core/run/redirect.h"
#include "core/run/repeats.h"
#include "core/run/result_form.h"
#include "core/train/checkpoints.h"

namespace assay::run {
namespace {

using Json = nlohmann::ordered_json;
namespace fs = std::filesystem;

constexpr const char* kOtherEngine = "choose another engine or leave --deterministic-mode out";

// Who has to hold the levels of --deterministic-mode.
std::vector<LevelClaim> claims_of(const plugin::Plugin& engine, const WorkerPlan& plan, const LoadedModel& model) {
  std::vector<LevelClaim> claims = {{"engine " + engine.name, engine.capabilities, kOtherEngine}};
  if (model.plugin() == nullptr) return claims;
  const bool plain = plan.backend_options.empty() || plan.backend_options == "{}";
  claims.push_back({"backend " + plan.backend + (plain ? "" : " with " + plan.backend_options), model.levels(),
                    plain ? "choose another backend or leave --deterministic-mode out"
                          : "leave out the backend option that gives it up"});
  return claims;
}

// Requests that a complete result of the case has.
size_t results_of(const CaseOrder& order) {
  return kept_of(order.prompts.size(), static_cast<size_t>(order.output_every));
}

}  // namespace

// What a case and a repeat end with.
void CaseRunner::add_end(const Judged& judged, const Files& files, Json* event) {
  (*event)["verdict"] = to_json(judged.verdict);
  (*event)["summary"] = to_json(judged.summary);
  if (judged.engine_failed) (*event)["engine_failed"] = true;
  if (judged.provenance) (*event)["provenance"] = Json::parse(to_json(*judged.provenance));
  (*event)["actual"] = judged.actual_written ? files.actual.string() : "";
  (*event)["log"] = files.log.string();
}

// What the opened engine holds.
LevelClaim CaseRunner::claim_of(const EngineAbout& about) const {
  return {"engine " + engine_.name, about.capabilities, kOtherEngine};
}

bool CaseRunner::machine_failed(const Judged& judged) {
  return judged.engine_failed && judged.verdict.verdict == Verdict::kInfra;
}

CaseRunner::CaseRunner(const WorkerPlan& plan, const plugin::Plugin& engine, const LoadedModel& model,
                       double load_seconds, plugin::PluginRegistry& registry, std::function<void(const Json&)> emit)
    : plan_(plan),
      engine_(engine),
      model_(model),
      load_seconds_(load_seconds),
      maker_(plan, engine, model),
      registry_(registry),
      emit_(std::move(emit)) {}

bool CaseRunner::run(const CaseOrder& order) {
  Json started = make_event(event::kCaseStarted);
  started["case"] = order.id;
  started["name"] = order.name;
  emit_(started);
  leave_no_result_of_before(order);
  if (order.repeats > 1) return run_repeats(order);
  const Files files(folder_of_repeat(plan_.output, order.id, 1));
  const Judged judged = run_once(order, files);
  Json finished = make_event(event::kCaseFinished);
  finished["case"] = order.id;
  finished["name"] = order.name;
  add_end(judged, files, &finished);
  emit_(finished);
  return !machine_failed(judged);
}

// A run that fails would leave them where its own are looked for.
void CaseRunner::leave_no_result_of_before(const CaseOrder& order) {
  std::error_code code;
  if (order.first_repeat > 1 || order.output_path.empty() || !fs::is_regular_file(order.output_path, code)) return;
  const Status moved = train::set_aside(order.output_path);
  if (moved.ok()) return;
  Json note = make_event(event::kNote);
  note["case"] = order.id;
  note["message"] = moved.with("results of an earlier run stay").message();
  emit_(note);
}

bool CaseRunner::run_repeats(const CaseOrder& order) {
  bool sound = true;
  std::optional<ResultSet> first;                                          // of the earliest repeat that has results
  for (int repeat = 1; repeat < order.first_repeat && !first; ++repeat) {  // run by workers that have died
    Result<ResultSet> read = read_results(Files(folder_of_repeat(plan_.output, order.id, repeat)).actual);
    if (read && (!order.recorded.empty() || read->requests.size() == results_of(order))) first = *std::move(read);
  }
  for (int repeat = order.first_repeat; repeat <= order.repeats; ++repeat) {
    Json event = make_event(event::kRepeatStarted);
    event["case"] = order.id;
    event["repeat"] = repeat;
    emit_(event);
    const Files files(folder_of_repeat(plan_.output, order.id, repeat));
    Judged judged = run_once(order, files);
    event = make_event(event::kRepeatFinished);
    event["case"] = order.id;
    event["repeat"] = repeat;
    const bool complete = judged.actual_written && !judged.engine_failed;
    if (complete && first) event["difference"] = compare::first_difference(*first, judged.results);
    add_end(judged, files, &event);
    emit_(event);
    if (complete && !first) first = std::move(judged.results);
    sound = sound && !machine_failed(judged);
  }
  Json finished = make_event(event::kCaseFinished);
  finished["case"] = order.id;
  finished["name"] = order.name;
  emit_(finished);
  return sound;
}

CaseRunner::Judged CaseRunner::run_once(const CaseOrder& given, const Files& files) {
  const Stopwatch watch;
  CaseOrder order = given;
  order.engine_options =
      with_case_begin(with_case_folder(given.engine_options, files.folder), std::chrono::steady_clock::now());
  std::error_code code;
  fs::create_directories(files.folder, code);
  fs::remove(files.actual, code);  // a result of an earlier run must not be taken for this one's
  fs::remove(files.reference, code);
  reset_peak_memory();
  Judged judged;
  {
    const Redirect redirect(files.log);
    try {
      const Status held = order.deterministic ? check_levels(claims_of(engine_, plan_, model_)) : Status();
      if (!held.ok()) {
        judged.verdict = {Verdict::kInvalid, held.message(), "", {}};
      } else {
        judged = order.relation.empty() ? run_and_judge(order, files) : run_relation(order, files);
      }
    } catch (const std::exception& failure) {
      judged.verdict = {Verdict::kCrashed, fmt::format("worker: {}", failure.what()), "", {}};
    }
  }
  if (judged.restarts > 0) report_restarts(order, &judged);
  CaseSummary& summary = judged.summary;
  summary.engine = plan_.engine;
  summary.backend = plan_.backend;
  summary.device = model_.device();
  summary.platform = plan_.platform;
  summary.arithmetic = model_.arithmetic();
  summary.weight_bytes = model_.weight_bytes();
  summary.load_seconds = load_seconds_;
  summary.peak_rss = proc_kilobytes("/proc/self/status", "VmHWM");
  summary.seconds = watch.seconds();
  add_difference(judged.verdict, &summary);
  return judged;
}

// They do not change the verdict, but nobody should have to look for them.
void CaseRunner::report_restarts(const CaseOrder& order, Judged* judged) {
  const std::string line = fmt::format("the launcher restarted the program {} time{}, engine.log has its words",
                                       judged->restarts, judged->restarts == 1 ? "" : "s");
  judged->verdict.environment.push_back(line);
  Json note = make_event(event::kNote);
  note["case"] = order.id;
  note["message"] = order.name + ": " + line;
  emit_(note);
}

void CaseRunner::emit_finished(const CaseOrder& order, const std::string& id, size_t tokens, double seconds,
                               const std::string& way) {
  Json json = make_event(event::kRequestFinished);
  json["case"] = order.id;
  json["request"] = id;
  if (!way.empty()) json["way"] = way;
  json["tokens"] = tokens;
  json["seconds"] = seconds;
  emit_(json);
}

void CaseRunner::emit_failed(const CaseOrder& order, const FailedRequest& failure, const std::string& way) {
  Json json = make_event(event::kRequestFailed);
  json["case"] = order.id;
  json["request"] = failure.id;
  if (!way.empty()) json["way"] = way;
  json["code"] = static_cast<int>(failure.code);
  json["message"] = failure.message;
  emit_(json);
}

}  // namespace assay::run
