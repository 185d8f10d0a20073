#include "core/run/case_runner.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <system_error>
#include <utility>

#include "core/run/case_summary.h"
#include "core/run/deterministic_mode.h"
#include "core/run/environment.h"
#include "core/run/events.h"
#include "core/run/judging.h"
#include "core/run/laboratory.h"
#include "core/run/process.h"
#include "core/run/reanchor.h"
#include "core/run/recorded_requests.h"
#include "core/run/redirect.h"
#include "core/run/relation_order.h"
#include "core/run/repeats.h"
#include "core/run/result_form.h"

namespace assay::run {
namespace {

using Json = nlohmann::ordered_json;
using Clock = std::chrono::steady_clock;
namespace fs = std::filesystem;

double since(Clock::time_point begin) { return std::chrono::duration<double>(Clock::now() - begin).count(); }

// The engine could not be opened, or broke while requests ran.
Verdict verdict_of_engine(StatusCode code) {
  switch (code) {
    case StatusCode::kInvalid:
    case StatusCode::kNotFound:
    case StatusCode::kUnsupported:
      return Verdict::kInvalid;
    case StatusCode::kInfra:
    case StatusCode::kCancelled:
      return Verdict::kInfra;
    default:
      return Verdict::kCrashed;
  }
}

// Who has to hold the levels of --deterministic-mode.
std::vector<LevelClaim> claims_of(const plugin::Plugin& engine, const WorkerPlan& plan, const LoadedModel& model) {
  std::vector<LevelClaim> claims = {
      {"engine " + engine.name, engine.capabilities, "choose another engine or leave --deterministic-mode out"}};
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

CaseVerdict failed(const std::vector<FailedRequest>& failures, size_t requests) {
  const FailedRequest& first = failures.front();
  std::string reason = fmt::format("request {}: {}", first.id, first.message);
  if (failures.size() > 1) reason += fmt::format(" ({} of {} requests failed)", failures.size(), requests);
  return {first.code == StatusCode::kInfra ? Verdict::kInfra : Verdict::kInvalid, reason, "", {}};
}

}  // namespace

struct CaseRunner::Files {
  explicit Files(fs::path where)
      : folder(std::move(where)),
        actual(folder / "actual.json"),
        reference(folder / "reference.json"),
        log(folder / "engine.log") {}

  fs::path folder;
  fs::path actual;
  fs::path reference;  // of a relation: the other side
  fs::path log;
};

struct CaseRunner::Judged {
  CaseVerdict verdict;
  CaseSummary summary;
  ResultSet results;
  std::optional<Provenance> provenance;
  bool actual_written = false;
  bool engine_failed = false;  // it refused, failed or broke: nothing was judged
};

// What a case and a repeat end with.
void CaseRunner::add_end(const Judged& judged, const Files& files, Json* event) {
  (*event)["verdict"] = to_json(judged.verdict);
  (*event)["summary"] = to_json(judged.summary);
  if (judged.engine_failed) (*event)["engine_failed"] = true;
  if (judged.provenance) (*event)["provenance"] = Json::parse(to_json(*judged.provenance));
  (*event)["actual"] = judged.actual_written ? files.actual.string() : "";
  (*event)["log"] = files.log.string();
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

void CaseRunner::run(const CaseOrder& order) {
  Json started = make_event(event::kCaseStarted);
  started["case"] = order.id;
  started["name"] = order.name;
  emit_(started);
  if (order.repeats > 1) return run_repeats(order);
  const Files files(folder_of_repeat(plan_.output, order.id, 1));
  const Judged judged = run_once(order, files);
  Json finished = make_event(event::kCaseFinished);
  finished["case"] = order.id;
  finished["name"] = order.name;
  add_end(judged, files, &finished);
  emit_(finished);
}

void CaseRunner::run_repeats(const CaseOrder& order) {
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
    if (complete && first) event["difference"] = first_difference(*first, judged.results);
    add_end(judged, files, &event);
    emit_(event);
    if (complete && !first) first = std::move(judged.results);
  }
  Json finished = make_event(event::kCaseFinished);
  finished["case"] = order.id;
  finished["name"] = order.name;
  emit_(finished);
}

CaseRunner::Judged CaseRunner::run_once(const CaseOrder& order, const Files& files) {
  const Clock::time_point begin = Clock::now();
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
        judged.engine_failed = true;
      } else {
        judged = order.relation.empty() ? run_and_judge(order, files) : run_relation(order, files);
      }
    } catch (const std::exception& failure) {
      judged.verdict = {Verdict::kCrashed, fmt::format("worker: {}", failure.what()), "", {}};
    }
  }
  CaseSummary& summary = judged.summary;
  summary.engine = plan_.engine;
  summary.backend = plan_.backend;
  summary.device = model_.device();
  summary.platform = plan_.platform;
  summary.arithmetic = model_.arithmetic();
  summary.weight_bytes = model_.weight_bytes();
  summary.load_seconds = load_seconds_;
  summary.peak_rss = proc_kilobytes("/proc/self/status", "VmHWM");
  summary.seconds = since(begin);
  add_difference(judged.verdict, &summary);
  return judged;
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

// One session, or several of which the last one's results count.
Result<SessionResult> CaseRunner::run_passes(const CaseOrder& order, const EngineInput& input, Measured* measured) {
  SessionListener listener;
  listener.finished = [this, &order](const std::string& id, size_t tokens, double seconds) {
    emit_finished(order, id, tokens, seconds, "");
  };
  listener.failed = [this, &order](const FailedRequest& failure) { emit_failed(order, failure, ""); };
  const int passes = passes_of(order);
  for (int pass = 1;; ++pass) {
    const Clock::time_point begin = Clock::now();
    Result<SessionResult> session = run_session(input, order, listener);
    if (!session) return session;
    measured->throughput.push_back(throughput_of(*session, since(begin)));
    measured->prefill_tokens = session->prefill_tokens;
    measured->peak_bytes = proc_kilobytes("/proc/self/status", "VmHWM");
    if (pass >= passes || !session->failed.empty()) return session;
  }
}

CaseRunner::Judged CaseRunner::run_and_judge(const CaseOrder& given, const Files& files) {
  Judged judged;
  std::vector<Quantity> quantities;
  Result<CaseOrder> filled = with_recorded_requests(given, &quantities);
  if (!filled) {
    judged.verdict = {Verdict::kInvalid, filled.status().message(), "", {}};
    return judged;
  }
  const CaseOrder& order = *filled;
  judged.summary.requests = order.prompts.size();
  const EngineInput input{.engine = &engine_,
                          .backend = model_.backend(),
                          .model = model_.model(),
                          .model_config_json = model_.config_json(),
                          .tokenizer_json = model_.tokenizer_json()};
  Measured measured;
  Result<SessionResult> session = run_passes(order, input, &measured);
  if (!session) {
    judged.verdict = {verdict_of_engine(session.status().code()), session.status().message(), "", {}};
    judged.engine_failed = true;
    return judged;
  }
  add_session(*session, &judged.summary);
  judged.provenance = maker_.provenance(order.prompts.size(), session->batch);
  ResultSet& actual = judged.results;
  actual.requests = std::move(session->records);
  actual.quantities = std::move(quantities);
  actual.path = files.actual.string();
  set_form(&actual);
  if (order.recorded.empty() && session->failed.empty()) keep_every(static_cast<size_t>(order.output_every), &actual);
  if (order.recorded.empty()) add_quantities(order, measured, &actual);
  const Status written = write_results(actual.path, actual);
  judged.actual_written = written.ok();
  if (!written.ok()) {
    judged.verdict = {Verdict::kInfra, written.message(), "", {}};
  } else if (!session->failed.empty()) {
    judged.verdict = failed(session->failed, order.prompts.size());
    judged.engine_failed = true;
  } else {
    Json judging = make_event(event::kJudgingStarted);
    judging["case"] = order.id;
    emit_(judging);
    EngineRerun rerun(input, order, model_.logits_mantissa(), model_.vocab_size());
    std::string impossible = EngineRerun::impossible(engine_, order);
    judged.verdict = judge_results({.plan = &plan_,
                                    .order = &order,
                                    .engine = &engine_,
                                    .registry = &registry_,
                                    .rerun = impossible.empty() ? &rerun : nullptr,
                                    .no_rerun = std::move(impossible),
                                    .provenance = judged.provenance ? &*judged.provenance : nullptr},
                                   actual);
  }
  explain(order, &judged);
  if (written.ok() && !order.output_path.empty()) {
    if (Status copied = write_results(order.output_path, actual); !copied.ok()) {
      judged.verdict = {Verdict::kInfra, copied.with("--output-path").message(), "", {}};
    }
  }
  return judged;
}

// A case that is judged by a relation between runs of its own. Files hold the pair that the verdict shows.
CaseRunner::Judged CaseRunner::run_relation(const CaseOrder& order, const Files& files) {
  Judged judged;
  EngineLaboratory laboratory(
      {.plan = &plan_,
       .order = &order,
       .engine = &engine_,
       .model = &model_,
       .registry = &registry_,
       .scratch = (files.folder / kResavedFolder).string(),
       .finished = [&](const std::string& way, const std::string& id, size_t tokens,
                       double seconds) { emit_finished(order, id, tokens, seconds, way); },
       .failed = [&](const std::string& way, const FailedRequest& failure) { emit_failed(order, failure, way); }});
  judged.provenance = maker_.provenance(order.prompts.size(), 0);
  metamorphic::RelationOutcome outcome = judge_order({.order = &order,
                                                      .engine = &engine_,
                                                      .model = &model_,
                                                      .registry = &registry_,
                                                      .provenance = &*judged.provenance,
                                                      .reference_path = files.reference.string(),
                                                      .changed_path = files.actual.string()},
                                                     laboratory);
  judged.verdict = std::move(outcome.verdict);
  judged.results = std::move(outcome.changed);
  add_session(laboratory.totals(), &judged.summary);
  judged.summary.requests = judged.results.requests.size();
  judged.provenance = maker_.provenance(judged.summary.requests, laboratory.totals().batch);
  if (judged.results.requests.empty()) return judged;
  Status written = write_results(files.reference.string(), outcome.reference);
  if (written.ok()) written = write_results(files.actual.string(), judged.results);
  judged.actual_written = written.ok();
  if (!written.ok()) judged.verdict = {Verdict::kInfra, written.message(), "", {}};
  return judged;
}

// Digests, where somebody asks for them, and what is different from where the golden was made.
void CaseRunner::explain(const CaseOrder& order, Judged* judged) {
  const bool failing = !passes(judged->verdict.verdict);
  const std::optional<Provenance> golden = failing ? provenance_of_golden(judged->verdict.golden) : std::nullopt;
  if (plan_.digest_weights || (golden && !(golden->weights_sha256 + golden->tokenizer_sha256).empty())) {
    Json digesting = make_event(event::kDigestStarted);
    digesting["case"] = order.id;
    emit_(digesting);
    if (Status digested = maker_.add_digests(&*judged->provenance); !digested.ok()) {
      Json note = make_event(event::kNote);
      note["case"] = order.id;
      note["message"] = digested.message();
      emit_(note);
    }
  }
  if (golden) explain_environment(*golden, *judged->provenance, &judged->verdict);
}

}  // namespace assay::run
