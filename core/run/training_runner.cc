#include "core/run/training_runner.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <system_error>
#include <utility>

#include "assay/golden.h"
#include "assay/sdk.hpp"
#include "core/run/events.h"
#include "core/run/redirect.h"
#include "core/run/repeats.h"
#include "core/run/stopwatch.h"
#include "core/train/metric_file.h"
#include "core/train/run_case.h"

namespace assay::run {
namespace {

using Json = nlohmann::ordered_json;
namespace fs = std::filesystem;

// An engine that trains, open for one repeat.
class TrainingEngine {
 public:
  static Result<TrainingEngine> open(const plugin::Plugin& plugin, const std::string& options) {
    const assay_engine_table* table = plugin.engine();
    auto config = sdk::sized<assay_engine_config>();
    config.model_config_json = sdk::view("{}");
    config.tokenizer_json = sdk::view("{}");
    config.options = sdk::view(options);
    void* handle = nullptr;
    if (Status opened = sdk::call(table->open, &config, &handle); !opened.ok()) {
      return opened.with("engine " + plugin.name);
    }
    return TrainingEngine(plugin.name, table, handle);
  }

  Result<train::RunEnd> train(const train::Job& job) {
    const std::string text = train::to_json(job);
    auto training = sdk::sized<assay_training>();
    training.run = job.run;
    training.job = sdk::view(text);
    auto result = sdk::sized<assay_training_result>();
    if (Status done = sdk::call(table_->train, engine_.get(), &training, &result); !done.ok()) {
      return done.with("engine " + name_);
    }
    return train::RunEnd{.exit_code = result.exit_code,
                         .signal = result.signal,
                         .restarts = result.restarts,
                         .message = std::string(sdk::text(result.message))};
  }

 private:
  struct Closer {
    const assay_engine_table* table;
    void operator()(void* engine) const { table->close(engine); }
  };
  TrainingEngine(std::string name, const assay_engine_table* table, void* engine)
      : name_(std::move(name)), table_(table), engine_(engine, Closer{table}) {}

  std::string name_;
  const assay_engine_table* table_;
  std::unique_ptr<void, Closer> engine_;
};

Result<std::string> golden_of(const CaseOrder& order, const WorkerPlan& plan) {
  if (!order.golden.empty()) return order.golden;
  const Result<GoldenChoice> choice = resolve_golden(order.dir, plan.environment_name, plan.platform);
  if (!choice) return choice.status();
  return choice->path;
}

}  // namespace

struct TrainingRunner::Once {
  train::CaseResult result;
  double seconds = 0;
  uint64_t runs = 0;
  std::string actual;  // path; empty: none
  std::string log;
};

TrainingRunner::TrainingRunner(const WorkerPlan& plan, const plugin::Plugin& engine, const std::atomic<bool>& cancelled,
                               std::function<void(const Json&)> emit)
    : plan_(plan), engine_(engine), cancelled_(cancelled), emit_(std::move(emit)) {}

void TrainingRunner::add_end(const Once& once, Json* event) const {
  CaseSummary summary;
  summary.engine = plan_.engine;
  summary.platform = plan_.platform;
  summary.requests = once.runs;
  summary.seconds = once.seconds;
  (*event)["verdict"] = to_json(once.result.verdict);
  (*event)["summary"] = to_json(summary);
  if (once.result.engine_failed) (*event)["engine_failed"] = true;
  (*event)["actual"] = once.actual;
  (*event)["log"] = once.log;
}

TrainingRunner::Once TrainingRunner::run_once(const CaseOrder& order, int repeat) {
  const Stopwatch watch;
  Once once;
  const Result<train::CasePlan> plan = train::parse_case_plan(order.training.at(static_cast<size_t>(repeat - 1)));
  if (!plan) {
    once.result.verdict = {Verdict::kInvalid, plan.status().message(), "", {}};
    return once;
  }
  const fs::path folder(plan->folder);
  std::error_code code;
  fs::create_directories(folder, code);
  for (const char* name : {"actual.json", "actual_2nd.json"}) fs::remove(folder / name, code);  // of an earlier run
  once.log = (folder / "engine.log").string();
  const Redirect redirect(once.log);
  Result<TrainingEngine> engine = TrainingEngine::open(engine_, order.engine_options);
  train::CaseHost host;
  host.train = [&](const train::Job& job) -> Result<train::RunEnd> {
    if (!engine) return engine.status();
    train::Job limited = job;  // what the runs before it have left
    if (job.time_limit_s > 0) limited.time_limit_s = std::max(job.time_limit_s - watch.seconds(), 0.001);
    ++once.runs;
    Result<train::RunEnd> end = engine->train(limited);
    Json event = make_event(end && end->ok() ? event::kRequestFinished : event::kRequestFailed);
    event["case"] = order.id;
    event["request"] = fmt::format("run {}", job.run);
    event["seconds"] = watch.seconds();
    if (!end) event["message"] = end.status().message();
    if (end) event["restarts"] = end->restarts;
    if (end && !end->ok()) event["message"] = end->message;
    emit_(event);
    return end;
  };
  host.judging = [&] {
    Json event = make_event(event::kJudgingStarted);
    event["case"] = order.id;
    emit_(event);
  };
  host.note = [&](const std::string& line) {
    Json event = make_event(event::kNote);
    event["case"] = order.id;
    event["message"] = line;
    emit_(event);
  };
  host.cancelled = [this] { return cancelled_.load(); };
  try {
    once.result = train::run_case(*plan, golden_of(order, plan_), host);
  } catch (const std::exception& failure) {
    once.result.verdict = {Verdict::kCrashed, fmt::format("worker: {}", failure.what()), "", {}};
  }
  once.result.verdict.compat = once.result.compat;
  if (once.result.actual) once.actual = (folder / "actual.json").string();
  once.seconds = watch.seconds();
  return once;
}

bool TrainingRunner::run(const CaseOrder& order) {
  const auto event_of = [&](std::string_view name, int repeat) {
    Json event = make_event(name);
    event["case"] = order.id;
    if (repeat > 0) event["repeat"] = repeat;
    if (repeat == 0) event["name"] = order.name;
    return event;
  };
  emit_(event_of(event::kCaseStarted, 0));
  bool sound = true;
  std::optional<train::MetricSet> first;
  for (int repeat = 1; repeat < order.first_repeat && !first; ++repeat) {  // of workers that have died
    Result<train::MetricSet> read =
        train::read_metrics((folder_of_repeat(plan_.output, order.id, repeat) / "actual.json").string());
    if (read) first = *std::move(read);
  }
  for (int repeat = order.first_repeat; repeat <= order.repeats && sound; ++repeat) {
    if (order.repeats > 1) emit_(event_of(event::kRepeatStarted, repeat));
    Once once = run_once(order, repeat);
    sound = !once.result.engine_failed || once.result.verdict.verdict != Verdict::kInfra;
    Json event = order.repeats > 1 ? event_of(event::kRepeatFinished, repeat) : event_of(event::kCaseFinished, 0);
    if (order.repeats > 1 && once.result.actual && first) {
      event["difference"] = train::first_difference(*first, *once.result.actual);
    }
    add_end(once, &event);
    emit_(event);
    if (!first && !once.result.engine_failed) first = std::move(once.result.actual);
  }
  if (order.repeats > 1) emit_(event_of(event::kCaseFinished, 0));
  return sound;
}

}  // namespace assay::run
