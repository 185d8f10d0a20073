// A case run and judged: by its golden, or by a relation between runs of its own.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "core/run/case_runner_parts.h"
#include "core/run/environment.h"
#include "core/run/events.h"
#include "core/run/judging.h"
#include "core/run/laboratory.h"
#include "core/run/process.h"
#include "core/run/reanchor.h"
#include "core/run/recorded_requests.h"
#include "core/run/relation_order.h"
#include "core/run/repeats.h"
#include "core/run/result_form.h"

namespace assay::run {
namespace {

using Json = nlohmann::ordered_json;

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

CaseVerdict failed(const std::vector<FailedRequest>& failures, size_t requests) {
  const FailedRequest& first = failures.front();
  std::string reason = fmt::format("request {}: {}", first.id, first.message);
  if (failures.size() > 1) reason += fmt::format(" ({} of {} requests failed)", failures.size(), requests);
  return {first.code == StatusCode::kInfra ? Verdict::kInfra : Verdict::kInvalid, reason, "", {}};
}

// The requests lack results and nothing else: none was refused or cancelled.
bool ran_to_the_end(const std::vector<FailedRequest>& failures) {
  return std::all_of(failures.begin(), failures.end(), [](const FailedRequest& failure) {
    return failure.code == StatusCode::kInvalid && !failure.refused;
  });
}

// Nothing is to be compared: the case is over once its requests, or its program, have ended well. `but`: what is wrong
// with the results all the same.
CaseVerdict uncompared(const CaseOrder& order, const std::string& but = "") {
  std::string reason = order.uncompared + ": the run ended well, nothing was compared";
  if (!but.empty()) reason += "; its results could not have been: " + but;
  return {Verdict::kSkipped, std::move(reason), "", {}};
}

// Of several programs, one for each request, others may not have been tried.
bool answers_all_at_once(const CaseOrder& order) {
  const auto options = nlohmann::json::parse(order.engine_options, nullptr, false);
  const bool apart = options.is_object() && options.value("per_request", nlohmann::json()) == true;
  return order.prompts.size() == 1 || !apart;
}

}  // namespace

// One session, or several of which the last one's results count.
Result<SessionResult> CaseRunner::run_passes(const CaseOrder& order, const EngineInput& input, Measured* measured) {
  SessionListener listener;
  listener.finished = [this, &order](const std::string& id, size_t tokens, double seconds) {
    emit_finished(order, id, tokens, seconds, "");
  };
  listener.failed = [this, &order](const FailedRequest& failure) { emit_failed(order, failure, ""); };
  const int passes = passes_of(order);
  for (int pass = 1;; ++pass) {
    const Stopwatch watch;
    Result<EngineSession> engine = EngineSession::open(input, order.engine_options);
    if (!engine) return engine.status();
    measured->ran = true;
    Result<SessionResult> session = engine->call(order, listener);
    if (!session) return session;
    measured->restarts += session->restarts;
    measured->throughput.push_back(throughput_of(*session, watch.seconds()));
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
  EngineInput input{.engine = &engine_,
                    .backend = model_.backend(),
                    .model = model_.model(),
                    .model_config_json = model_.config_json(),
                    .tokenizer_json = model_.tokenizer_json()};
  Measured measured;
  Result<SessionResult> session = run_passes(order, input, &measured);
  judged.restarts = measured.restarts;
  // A program that has ended well and wrote nothing of use is not at fault where nobody would have looked.
  const bool forgiving = !order.uncompared.empty() && engine_.can(ASSAY_CAP_TRAIN) && answers_all_at_once(order);
  if (!session && forgiving && measured.ran && session.status().code() == StatusCode::kInvalid) {
    judged.verdict = uncompared(order, session.status().message());
    return judged;
  }
  if (!session) {
    judged.verdict = {verdict_of_engine(session.status().code()), session.status().message(), "", {}};
    // An engine that refuses what it is opened with did not fail: nothing ran.
    judged.engine_failed = measured.ran || judged.verdict.verdict != Verdict::kInvalid;
    return judged;
  }
  input.found = session->about.capabilities;
  add_session(*session, &judged.summary);
  judged.provenance = maker_.provenance(order.prompts.size(), session->batch);
  judged.provenance->facts = session->about.facts;
  const Status held = order.deterministic ? check_levels({claim_of(session->about)}) : Status();
  if (!held.ok()) {
    judged.verdict = {Verdict::kInvalid, held.message(), "", {}};
    return judged;
  }
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
    if (forgiving && ran_to_the_end(session->failed)) {
      judged.verdict = uncompared(order, judged.verdict.reason);
    } else {
      judged.engine_failed = true;
    }
  } else if (!order.uncompared.empty()) {
    judged.verdict = uncompared(order);
  } else {
    Json judging = make_event(event::kJudgingStarted);
    judging["case"] = order.id;
    emit_(judging);
    EngineRerun rerun(input, order, model_.logits_mantissa(), model_.vocab_size());
    std::string impossible = EngineRerun::impossible(input, order);
    judged.verdict = judge_results({.plan = &plan_,
                                    .order = &order,
                                    .about = &session->about,
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
  judged.restarts = laboratory.totals().restarts;
  judged.summary.requests = judged.results.requests.size();
  judged.provenance = maker_.provenance(judged.summary.requests, laboratory.totals().batch);
  judged.provenance->facts = laboratory.totals().about.facts;
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
