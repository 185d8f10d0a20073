#include "core/run/recorder.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "core/run/events.h"

namespace assay::run {

using Json = nlohmann::ordered_json;

Recorder::Recorder(Plan& plan, Journal& journal, RunObserver& observer)
    : plan_(plan), journal_(journal), observer_(observer), done_(plan.cases.size(), false) {}

void Recorder::append(const std::string& line) {
  if (Status written = journal_.append(line); !written.ok() && journal_status_.ok()) journal_status_ = written;
}

void Recorder::note(const Json& event) {
  append(to_line(event));
  const std::string name = event["event"];
  if (name == event::kNote || name == event::kWorkerCrashed) {
    observer_.note(name, event.value("message", ""));
  }
}

Json Recorder::note_line(const std::string& line) {
  Result<Json> event = parse_line(line);
  if (!event) return Json();
  const std::string name = (*event)["event"];
  if (name != event::kCaseFinished) append(line + "\n");
  const std::string worker = event->value("worker", "");
  if (name == event::kLoadFinished) {
    ++loads_;
    observer_.note(name, fmt::format("{}: loaded {:.1f} MB in {:.2f} s on {}", worker,
                                     static_cast<double>(event->value("bytes", uint64_t{0})) / 1e6,
                                     event->value("seconds", 0.0), event->value("device", "no device")));
  } else if (name == event::kLoadFailed || name == event::kNote) {
    observer_.note(name, worker + ": " + event->value("message", ""));
  } else if (name == event::kCaseStarted) {
    observer_.case_started(event->value("name", ""), worker);
  }
  return *std::move(event);
}

void Recorder::finish(size_t index, const Json& event) {
  if (done_[index]) return;
  CaseOutcome& outcome = plan_.cases[index].outcome;
  Result<CaseVerdict> verdict = parse_case_verdict(event.value("verdict", Json()));
  if (!verdict) return finish(index, CaseVerdict{Verdict::kInfra, verdict.status().message(), "", {}});
  outcome.verdict = *std::move(verdict);
  if (Result<CaseSummary> summary = parse_case_summary(event.value("summary", Json::object())); summary.ok()) {
    outcome.summary = *std::move(summary);
  }
  if (const auto made = event.find("provenance"); made != event.end()) {
    if (Result<Provenance> provenance = parse_provenance(made->dump())) outcome.provenance = *std::move(provenance);
  }
  outcome.actual = event.value("actual", "");
  outcome.log = event.value("log", "");
  complete(index, event.value("engine_failed", false), event);
}

void Recorder::finish(size_t index, CaseVerdict verdict, const std::string& log) {
  if (done_[index]) return;
  CaseOutcome& outcome = plan_.cases[index].outcome;
  outcome.verdict = std::move(verdict);
  outcome.log = log;
  Json event = make_event(event::kCaseFinished);
  event["case"] = plan_.cases[index].order.id;
  event["name"] = outcome.name;
  event["summary"] = to_json(outcome.summary);
  event["actual"] = outcome.actual;
  event["log"] = outcome.log;
  const bool crashed = outcome.verdict.verdict == Verdict::kCrashed;
  complete(index, crashed, std::move(event));
}

void Recorder::complete(size_t index, bool engine_failed, Json event) {
  const PlannedCase& planned = plan_.cases[index];
  CaseOutcome& outcome = plan_.cases[index].outcome;
  const bool broken =
      planned.settled && outcome.verdict.verdict == Verdict::kInvalid;  // no waiver excuses a bad config
  if (!broken) {
    apply_declarations(planned.declarations,
                       {.today = plan_.today,
                        .platform = outcome.summary.platform,
                        .environment = plan_.environment,
                        .engine_failed = engine_failed},
                       &outcome.verdict);
  }
  event["verdict"] = to_json(outcome.verdict);
  append(to_line(event));
  done_[index] = true;
  if (Status synced = journal_.sync_soon(); !synced.ok() && journal_status_.ok()) journal_status_ = synced;
  observer_.case_finished(outcome);
}

}  // namespace assay::run
