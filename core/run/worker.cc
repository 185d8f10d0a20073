#include "core/run/worker.h"

#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <utility>

#include "core/plugin/registry.h"
#include "core/run/case_runner.h"
#include "core/run/event_file.h"
#include "core/run/events.h"
#include "core/run/leash.h"
#include "core/run/loaded_model.h"
#include "core/run/secrets.h"
#include "core/run/training_runner.h"
#include "core/run/worker_plan.h"
#include "core/run/worker_resume.h"

namespace assay::run {
namespace {

using Json = nlohmann::ordered_json;
using Clock = std::chrono::steady_clock;

constexpr int kUnusable = 2;

std::atomic<bool> cancel_requested{false};  // NOLINT: a signal handler can reach nothing else

void request_cancel(int /*signal*/) { cancel_requested = true; }
bool is_cancelled() { return cancel_requested; }

int complain(const Status& status, int code = kUnusable) {
  std::fputs(("assay-worker: " + status.message() + "\n").c_str(), stderr);
  return code;
}

// Lines of plugins go to stderr, which is engine.log while a case runs.
void log_line(assay_log_level level, std::string_view line) {
  constexpr std::array<const char*, 4> kLevels = {"debug", "info", "warning", "error"};
  const auto index = static_cast<size_t>(level);
  const std::string text = fmt::format("{}: {}\n", index < kLevels.size() ? kLevels[index] : "log", line);
  [[maybe_unused]] const ssize_t n = ::write(STDERR_FILENO, text.data(), text.size());
}

// A wrong input is the case's fault, anything else the machine's.
Verdict verdict_of_load(StatusCode code) {
  switch (code) {
    case StatusCode::kInvalid:
    case StatusCode::kNotFound:
    case StatusCode::kUnsupported:
      return Verdict::kInvalid;
    default:
      return Verdict::kInfra;
  }
}

class Worker {
 public:
  Worker(WorkerPlan plan, EventWriter writer, command::Redactor redactor)
      : plan_(std::move(plan)),
        writer_(std::move(writer)),
        redactor_(std::move(redactor)),
        registry_(plan_.plugins, plugin::make_host({.log = log_line, .cancelled = is_cancelled})) {}

  int run() {
    Json started = event(event::kWorkerStarted);
    started["schema"] = kEventSchema;
    started["pid"] = ::getpid();
    if (!plan_.heartbeat.empty()) started["host"] = host_name();
    if (!plan_.device.empty()) started["device"] = plan_.device;
    emit(started);
    const Clock::time_point begin = Clock::now();
    Json loading = event(event::kLoadStarted);
    loading["engine"] = plan_.engine;
    loading["backend"] = plan_.backend;
    emit(loading);
    const Result<const plugin::Plugin*> engine = registry_.find(plugin::Kind::kEngine, plan_.engine);
    if (!engine) return refuse(engine.status());
    Result<LoadedModel> model = LoadedModel::load(plan_, registry_);
    if (!model) return refuse(model.status());
    const double seconds = std::chrono::duration<double>(Clock::now() - begin).count();
    Json loaded = event(event::kLoadFinished);
    loaded["seconds"] = seconds;
    loaded["bytes"] = model->weight_bytes();
    loaded["device"] = model->device();
    loaded["arithmetic"] = model->arithmetic();
    loaded["checkpoint"] = model->checkpoint();
    loaded["platform"] = plan_.platform;
    emit(loaded);
    const auto emit = [this](const Json& e) { emit_of_worker(e); };
    CaseRunner runner(plan_, **engine, *model, seconds, registry_, emit);
    if ((*engine)->can(ASSAY_CAP_TRAIN)) std::signal(SIGTERM, request_cancel);  // it has a program to end
    TrainingRunner training(plan_, **engine, cancel_requested, emit);
    for (const CaseOrder& order : plan_.cases) {
      const bool sound = order.training.empty() ? runner.run(order) : training.run(order);
      if (Status synced = writer_.sync_soon(); !synced.ok()) return complain(synced, kCannotReport);
      if (!sound && &order != &plan_.cases.back()) return leave(order.name);
    }
    return finish();
  }

 private:
  Json event(std::string_view name) {
    Json made = make_event(name);
    made["worker"] = plan_.worker;
    return made;
  }
  void emit(Json made) {
    redact(redactor_, &made);
    if (Status written = writer_.append(to_line(made)); !written.ok()) std::exit(complain(written, kCannotReport));
  }
  void emit_of_worker(Json made) {
    made["worker"] = plan_.worker;
    emit(std::move(made));
  }

  // The load failed: every case of the group gets the same verdict.
  int refuse(const Status& status) {
    Json failed = event(event::kLoadFailed);
    failed["code"] = static_cast<int>(status.code());
    failed["message"] = status.message();
    emit(failed);
    const CaseVerdict verdict{verdict_of_load(status.code()), status.message(), "", {}};
    for (const CaseOrder& order : plan_.cases) {
      Json finished = event(event::kCaseFinished);
      finished["case"] = order.id;
      finished["name"] = order.name;
      finished["verdict"] = to_json(verdict);
      CaseSummary summary;
      summary.engine = plan_.engine;
      summary.backend = plan_.backend;
      summary.platform = plan_.platform;
      finished["summary"] = to_json(summary);
      emit(finished);
    }
    return finish();
  }

  // The other cases get a process in which the device can be used again.
  int leave(const std::string& name) {
    const Status synced = writer_.sync();
    if (!synced.ok()) return complain(synced, kCannotReport);
    return complain(infra("the machine failed under case " + name + "; a new worker goes on"));
  }

  int finish() {
    Json finished = event(event::kWorkerFinished);
    finished["cases"] = plan_.cases.size();
    emit(finished);
    const Status synced = writer_.sync();
    return synced.ok() ? 0 : complain(synced, kCannotReport);
  }

  WorkerPlan plan_;
  EventWriter writer_;
  const command::Redactor redactor_;
  plugin::PluginRegistry registry_;
};

}  // namespace

int run_worker(const std::filesystem::path& plan_file, const std::filesystem::path& event_file,
               const std::string& secrets) {
  const Result<std::string> text = read_file(plan_file);
  if (!text) return complain(text.status());
  const Result<std::string> whole = reveal_secrets(*text, secrets);
  if (!whole) return complain(whole.status());
  Result<WorkerPlan> plan = parse_worker_plan(*whole);
  if (!plan) return complain(plan.status());
  const bool launched = !plan->heartbeat.empty();
  std::unique_ptr<Leash> leash;
  if (launched) {
    Result<std::unique_ptr<Leash>> tied = Leash::tie(*plan, event_file);
    if (!tied) return complain(tied.status());
    leash = *std::move(tied);
    if (Status status = skip_what_is_done(event_file, &*plan); !status.ok()) return complain(status);
  }
  Result<EventWriter> writer = launched ? EventWriter::go_on(event_file) : EventWriter::create(event_file);
  if (!writer) return complain(writer.status());
  command::Redactor redactor = secrets_of_worker(*plan, secrets);
  return Worker(*std::move(plan), *std::move(writer), std::move(redactor)).run();
}

}  // namespace assay::run
