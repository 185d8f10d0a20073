#include "core/run/follower.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <system_error>
#include <utility>

#include "core/command/log_tail.h"
#include "core/run/events.h"
#include "core/run/repeats.h"
#include "core/run/secrets.h"

namespace assay::run {
namespace {

using Json = nlohmann::ordered_json;
using Clock = Followed::Clock;

constexpr int kLoadAttempts = 2;

double seconds(std::chrono::milliseconds value) { return static_cast<double>(value.count()) / 1000; }

}  // namespace

Follower::Follower(const RunOptions& options, const Plan& plan, Recorder& recorder)
    : options_(options), plan_(plan), recorder_(recorder) {
  for (size_t i = 0; i < plan.cases.size(); ++i) by_id_.emplace(plan.cases[i].order.id, i);
}

Follower::Files Follower::files(const std::string& id) const {
  const std::string base = (options_.output / "workers" / id).string();
  return {base + ".plan.json", base + ".events.jsonl", base + ".log"};
}

WorkerPlan Follower::plan_of(const Work& work, const std::string& id) const {
  WorkerPlan plan = plan_.groups[work.group].head;
  plan.worker = id;
  for (const size_t index : work.cases) {
    plan.cases.push_back(plan_.cases[index].order);
    plan.cases.back().first_repeat = recorder_.next_repeat(index);
  }
  return plan;
}

Status Follower::write_plan(const WorkerPlan& plan, const Files& files,
                            std::map<std::string, std::string>* environment) const {
  const HiddenSecrets hidden = hide_secrets(recorder_.redactor(), to_json(plan));
  if (!hidden.secrets.empty()) (*environment)[kSecretsVariable] = hidden.secrets;
  return write_file(files.plan, hidden.text);
}

bool Follower::follow(Followed& worker) {
  const std::vector<std::string> lines = worker.reader.poll();
  for (const std::string& line : lines) {
    try {
      handle(worker, line);
    } catch (const Json::exception&) {
      // A member of an unexpected type: whoever wrote it, it is no event of ours. The case ends when its worker does.
    }
  }
  return !lines.empty();
}

void Follower::handle(Followed& worker, const std::string& line) {
  const Json event = recorder_.note_line(line);
  if (event.is_null()) return;
  worker.heard = true;
  const std::string name = event["event"];
  if (name == event::kWorkerStarted) {
    worker.host = event.value("host", "");
    if (++worker.starts == 1) return;
    if (worker.running) remove_leftovers(*worker.running);  // begun anew by the launcher's system
    worker.running.reset();
    worker.loaded = worker.over = worker.orphaned = false;
    worker.deadline = Clock::now() + options_.load_timeout;
  } else if (name == event::kWorkerFinished) {
    worker.over = true;
  } else if (name == event::kWorkerOrphaned) {
    worker.orphaned = true;
  } else if (name == event::kLoadFinished || name == event::kLoadFailed) {
    worker.loaded = true;
    worker.deadline = Clock::now() + options_.load_timeout;
  } else if (name == event::kRequestFinished || name == event::kRequestFailed) {
    worker.last_request = event.value("request", "");
    worker.last_way = event.value("way", "");
  } else if (name == event::kJudgingStarted) {
    worker.judging = true;
  } else if (name == event::kDigestStarted) {  // not the engine's time
    worker.deadline = std::max(worker.deadline, Clock::now() + options_.load_timeout);
  } else if (name == event::kCaseStarted || name == event::kCaseFinished || name == event::kRepeatStarted ||
             name == event::kRepeatFinished) {
    handle_case(worker, name, event);
  }
}

void Follower::handle_case(Followed& worker, const std::string& name, const Json& event) {
  const auto found = by_id_.find(event.value("case", ""));
  if (found == by_id_.end()) return;
  const size_t index = found->second;
  if (name == event::kRepeatFinished) return recorder_.finish_repeat(index, event);
  if (name != event::kCaseFinished) {
    worker.running = index;
    worker.judging = false;
    worker.last_request.clear();
    worker.deadline = Clock::now() + plan_.cases[index].timeout;
    return;
  }
  recorder_.finish(index, event);
  std::erase(worker.work.cases, index);
  worker.running.reset();
  worker.progressed = true;
  worker.deadline = Clock::now() + options_.load_timeout;
}

std::string Follower::overdue(const Followed& worker) const {
  if (worker.running) {
    return fmt::format("no verdict after {:.1f} s: hung, or in need of a larger ASSAY.timeout",
                       seconds(plan_.cases[*worker.running].timeout));
  }
  return fmt::format("{} not over after {:.1f} s", worker.loaded ? "the way to the next case" : "load",
                     seconds(options_.load_timeout));
}

Work Follower::conclude(Followed& worker, const Death& death) {
  Work rest = std::move(worker.work);
  const std::string tail = tail_of_log(worker);
  const auto nothing = [&](Verdict verdict, const std::string& reason) {
    give_up(rest.cases, verdict, reason);
    return Work{.group = rest.group, .cases = {}};
  };
  ++crashes_;
  Json event = make_event(event::kWorkerCrashed);
  event["worker"] = worker.id;
  event["group"] = rest.group;
  event["death"] = death.text;
  event["case"] = worker.running ? plan_.cases[*worker.running].order.id : "";
  event["request"] = worker.last_request;
  event["message"] = fmt::format("{}: {}{}{}", worker.id, death.text,
                                 worker.running ? " in case " + plan_.cases[*worker.running].outcome.name : "", tail);
  recorder_.note(event);
  if (worker.running) tidy(*worker.running);
  if (death.cancelled) {
    if (worker.running) {
      recorder_.finish(*worker.running, CaseVerdict{Verdict::kInfra, "cancelled while it ran", "", {}},
                       log_of_case(*worker.running));
    }
    return nothing(Verdict::kInfra, "cancelled before it started");
  }
  if (worker.running) {
    const std::string last = worker.judging ? "all requests were over, its results were being judged"
                             : worker.last_request.empty()
                                 ? "no request had finished"
                                 : "last finished request: " + worker.last_request +
                                       (worker.last_way.empty() ? "" : " (" + worker.last_way + ")");
    const std::string reason = death.mute
                                   ? fmt::format("the worker could not write its events to {}: check the disk; {}{}",
                                                 files(worker.id).events.string(), last, tail)
                                   : fmt::format("{}; {}{}", death.text, last, tail);
    const bool again =
        recorder_.died(*worker.running, CaseVerdict{death.mute ? Verdict::kInfra : Verdict::kCrashed, reason, "", {}},
                       log_of_case(*worker.running));
    if (!again) std::erase(rest.cases, *worker.running);
    rest.failed_loads = rest.idle_deaths = 0;
  } else if (!worker.loaded) {
    ++rest.failed_loads;
    if (rest.failed_loads >= kLoadAttempts || death.condemned) {
      return nothing(Verdict::kInfra, fmt::format("worker died while it started or loaded, {} time(s): {}{}",
                                                  rest.failed_loads, death.text, tail));
    }
  } else {
    rest.idle_deaths = worker.progressed ? 1 : rest.idle_deaths + 1;
    if (rest.idle_deaths >= kLoadAttempts) {
      return nothing(Verdict::kInfra,
                     fmt::format("worker died between cases, {} times: {}{}", rest.idle_deaths, death.text, tail));
    }
  }
  return rest;
}

void Follower::give_up(const std::deque<size_t>& cases, Verdict verdict, const std::string& reason) {
  for (const size_t index : cases) recorder_.finish(index, CaseVerdict{verdict, reason, "", {}});
}

void Follower::remove_leftovers(size_t index) const {
  std::error_code code;  // what cannot be removed stays, and costs nothing but room
  std::filesystem::remove_all(
      folder_of_repeat(options_.output, plan_.cases[index].order.id, recorder_.next_repeat(index)) / kResavedFolder,
      code);
}

void Follower::tidy(size_t index) const {
  remove_leftovers(index);
  const std::filesystem::path folder =
      folder_of_repeat(options_.output, plan_.cases[index].order.id, recorder_.next_repeat(index));
  if (Status done = clean_texts(recorder_.redactor(), folder, Below::kAllTexts); !done.ok()) {
    Json event = make_event(event::kNote);
    event["message"] = done.message();
    recorder_.note(event);
  }
}

std::string Follower::log_of_case(size_t index) const {
  const std::filesystem::path log =
      folder_of_repeat(options_.output, plan_.cases[index].order.id, recorder_.next_repeat(index)) / "engine.log";
  std::error_code code;
  return std::filesystem::exists(log, code) ? log.string() : "";
}

std::string Follower::tail_of_log(const Followed& worker) const {
  const std::string own = worker.running ? log_of_case(*worker.running) : "";
  const std::string lines =
      command::last_lines(own.empty() ? worker.log : std::filesystem::path(own), recorder_.redactor());
  return lines.empty() ? "" : fmt::format("; last output: {}", lines);
}

}  // namespace assay::run
