#include "core/run/recorder.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/run/events.h"
#include "core/run/repeats.h"
#include "core/run/secrets.h"

namespace assay::run {

using Json = nlohmann::ordered_json;

namespace {

constexpr int kMostDeaths = 2;  // of the workers of one case: its further repeats are not worth another load

}  // namespace

Recorder::Recorder(Plan& plan, Journal& journal, RunObserver& observer, command::Redactor redactor)
    : plan_(plan),
      journal_(journal),
      observer_(observer),
      redactor_(std::move(redactor)),
      done_(plan.cases.size(), false),
      ended_(plan.cases.size()) {}

void Recorder::append(const std::string& line) {
  if (Status written = journal_.append(line); !written.ok() && journal_status_.ok()) journal_status_ = written;
}

void Recorder::note(const Json& told) {
  Json event = told;
  redact(redactor_, &event);
  append(to_line(event));
  const std::string name = event["event"];
  if (name == event::kNote || name == event::kWorkerCrashed) {
    observer_.note(name, event.value("message", ""));
  }
}

void Recorder::note_all(std::vector<Json> events) {
  std::string lines;
  for (Json& event : events) {
    redact(redactor_, &event);
    lines += to_line(event);
  }
  append(lines);
}

Json Recorder::note_line(const std::string& line) {
  Result<Json> event = parse_line(line);
  if (!event) return Json();
  const std::string name = (*event)["event"];
  if (!redactor_.empty()) redact(redactor_, &*event);
  if (name != event::kCaseFinished) append(redactor_.empty() ? line + "\n" : to_line(*event));
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

Recorder::Ended Recorder::read(size_t index, const Json& event) const {
  Result<CaseVerdict> verdict = parse_case_verdict(event.value("verdict", Json()));
  if (!verdict) return ended_by_runner(index, {Verdict::kInfra, verdict.status().message(), "", {}}, "");
  Ended ended;
  ended.verdict = *std::move(verdict);
  ended.summary = plan_.cases[index].outcome.summary;
  if (Result<CaseSummary> summary = parse_case_summary(event.value("summary", Json::object())); summary.ok()) {
    ended.summary = *std::move(summary);
  }
  if (const auto made = event.find("provenance"); made != event.end()) {
    if (Result<Provenance> provenance = parse_provenance(made->dump())) ended.provenance = *std::move(provenance);
  }
  ended.actual = event.value("actual", "");
  ended.log = event.value("log", "");
  ended.difference = event.value("difference", "");
  ended.engine_failed = event.value("engine_failed", false);
  return ended;
}

Recorder::Ended Recorder::ended_by_runner(size_t index, CaseVerdict verdict, const std::string& log) const {
  Ended ended;
  ended.engine_failed = verdict.verdict == Verdict::kCrashed;
  ended.verdict = std::move(verdict);
  ended.verdict.reason = redactor_.text(ended.verdict.reason);
  ended.summary = plan_.cases[index].outcome.summary;
  ended.log = log;
  return ended;
}

Json Recorder::case_event(std::string_view name, size_t index) const {
  Json event = make_event(name);
  event["case"] = plan_.cases[index].order.id;
  event["name"] = plan_.cases[index].outcome.name;
  return event;
}

void Recorder::finish(size_t index, const Json& event) {
  if (done_[index]) return;
  if (ended_[index].empty()) return complete(index, read(index, event), event);
  if (event.contains("verdict")) ended_[index].push_back(read(index, event));  // the load for a later repeat failed
  complete_repeated(index, event);
}

void Recorder::finish(size_t index, CaseVerdict verdict, const std::string& log) {
  if (done_[index]) return;
  Ended ended = ended_by_runner(index, std::move(verdict), log);
  if (ended_[index].empty()) return complete(index, std::move(ended), case_event(event::kCaseFinished, index));
  ended_[index].push_back(std::move(ended));
  complete_repeated(index, case_event(event::kCaseFinished, index));
}

void Recorder::finish_repeat(size_t index, const Json& event) {
  if (done_[index]) return;
  ended_[index].push_back(read(index, event));
  clean(ended_[index].back().log);
}

bool Recorder::died(size_t index, CaseVerdict verdict, const std::string& log) {
  const size_t planned = static_cast<size_t>(plan_.cases[index].order.repeats);
  if (planned <= 1) {
    finish(index, std::move(verdict), log);
    return false;
  }
  if (ended_[index].size() >= planned) {  // all had ended, the word of it got lost
    complete_repeated(index, case_event(event::kCaseFinished, index));
    return false;
  }
  Json event = case_event(event::kRepeatFinished, index);
  event["repeat"] = next_repeat(index);
  event["verdict"] = to_json(verdict);
  event["log"] = log;
  note(event);
  std::vector<Ended>& ended = ended_[index];
  ended.push_back(ended_by_runner(index, std::move(verdict), log));
  const auto deaths = std::count_if(ended.begin(), ended.end(),
                                    [](const Ended& one) { return one.verdict.verdict == Verdict::kCrashed; });
  if (ended.size() < planned && deaths < kMostDeaths) return true;
  complete_repeated(index, case_event(event::kCaseFinished, index));
  return false;
}

// One end out of those of all repeats: verdict and log of the repeat that explains it, results of the first.
Recorder::Ended Recorder::combined(size_t index) {
  const auto comparable = [](const Ended& one) { return !one.actual.empty() && !one.engine_failed; };
  std::vector<RepeatVerdict> verdicts;
  double seconds = 0;
  CaseOutcome& outcome = plan_.cases[index].outcome;
  for (const Ended& one : ended_[index]) {
    verdicts.push_back({.verdict = one.verdict, .has_results = comparable(one), .difference = one.difference});
    outcome.repeats.push_back({.verdict = one.verdict.verdict,
                               .reason = one.verdict.reason,
                               .seconds = one.summary.seconds,
                               .identical_to_first = comparable(one) && one.difference.empty(),
                               .difference = one.difference,
                               .actual = one.actual});
    seconds += one.summary.seconds;
  }
  CombinedVerdict all = combine_repeats(verdicts, static_cast<size_t>(plan_.cases[index].order.repeats));
  Ended ended = ended_[index][all.shown];
  ended.verdict = std::move(all.verdict);
  ended.summary.seconds = seconds;
  const auto first =
      std::find_if(ended_[index].begin(), ended_[index].end(), [](const Ended& one) { return !one.actual.empty(); });
  if (first != ended_[index].end()) {
    ended.actual = first->actual;
    ended.provenance = first->provenance;
  }
  return ended;
}

// Takes secrets out of a log that nobody writes to any more.
void Recorder::clean(const std::string& log) {
  if (log.empty()) return;
  if (Status done = redactor_.file(log); !done.ok() && journal_status_.ok()) journal_status_ = done;
}

void Recorder::complete_repeated(size_t index, Json event) {
  Ended ended = combined(index);
  event["repeats"] = Json::array();
  for (const Repeat& repeat : plan_.cases[index].outcome.repeats) event["repeats"].push_back(to_json(repeat));
  ended_[index].clear();
  complete(index, std::move(ended), std::move(event));
}

void Recorder::complete(size_t index, Ended ended, Json event) {
  const PlannedCase& planned = plan_.cases[index];
  CaseOutcome& outcome = plan_.cases[index].outcome;
  outcome.verdict = std::move(ended.verdict);
  outcome.summary = std::move(ended.summary);
  outcome.provenance = std::move(ended.provenance);
  outcome.actual = std::move(ended.actual);
  outcome.log = std::move(ended.log);
  clean(outcome.log);
  const bool broken =
      planned.settled && outcome.verdict.verdict == Verdict::kInvalid;  // no waiver excuses a bad config
  if (!broken) {
    apply_declarations(planned.declarations,
                       {.today = plan_.today,
                        .platform = outcome.summary.platform,
                        .environment = planned.environment,
                        .relation = outcome.relation,
                        .engine_failed = ended.engine_failed},
                       &outcome.verdict);
  }
  if (!plan_.compat) {
    outcome.verdict.compat.reset();
  } else if (planned.order.training.empty()) {  // of a training case the worker tells
    outcome.verdict.compat = judge_compat(planned.compat, planned.environment, outcome);
  }
  event["verdict"] = to_json(outcome.verdict);
  event["summary"] = to_json(outcome.summary);
  if (outcome.provenance) event["provenance"] = Json::parse(to_json(*outcome.provenance));
  event["actual"] = outcome.actual;
  event["log"] = outcome.log;
  append(to_line(event));
  done_[index] = true;
  if (Status synced = journal_.sync_soon(); !synced.ok() && journal_status_.ok()) journal_status_ = synced;
  observer_.case_finished(outcome);
}

}  // namespace assay::run
