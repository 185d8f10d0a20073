#include "core/run/read_run.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>

#include <cerrno>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <system_error>
#include <utility>

#include "core/run/event_file.h"
#include "core/run/events.h"

namespace assay::run {
namespace {

using Json = nlohmann::ordered_json;
namespace fs = std::filesystem;

// A path of the journal as it is now: the folder may have been moved as a whole, e.g. out of a CI job.
std::string present_path(const std::string& written, const fs::path& folder, const std::string& id) {
  std::error_code code;
  if (written.empty() || fs::exists(written, code)) return written;
  const std::string own = "/cases/" + id + "/";  // what follows may lie in the folder of a repeat
  const size_t place = written.rfind(own);
  if (place == std::string::npos) return "";
  const fs::path moved = folder / "cases" / id / written.substr(place + own.size());
  return fs::exists(moved, code) ? moved.string() : "";
}

// Whether a living process holds the lock of the folder.
bool locked(const fs::path& folder) {
  const Fd lock(::open((folder / ".lock").c_str(), O_RDONLY | O_CLOEXEC));
  return lock && ::flock(lock.get(), LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK;
}

class Reader {
 public:
  Reader(const fs::path& folder, Detail detail) : folder_(folder), detail_(detail) {}

  Status line(const std::string& text) {
    const auto callback = [this](int /*depth*/, Json::parse_event_t kind, Json& value) {
      if (detail_ == Detail::kFull || kind != Json::parse_event_t::key) return true;
      return value != "evidence" && value != "metrics";
    };
    Json json = Json::parse(text, callback, false);
    if (!json.is_object()) return invalid("not a JSON object");
    const auto name = json.find("event");
    if (name == json.end() || !name->is_string()) return invalid("no \"event\"");
    try {
      return take(name->get<std::string>(), json);
    } catch (const std::exception& failure) {  // a member of another type
      return invalid(failure.what());
    }
  }

  Result<RunRecord> finish() {
    if (!begun_) return invalid("no run_started line: this is not a journal of a run, or nothing of it was written");
    RunSummary& summary = record_.summary;
    record_.running = !record_.finished && locked(folder_);
    for (size_t i = 0; i < states_.size(); ++i) settle(i);
    if (record_.running) {
      std::vector<CaseOutcome> done;
      for (size_t i = 0; i < states_.size(); ++i) {
        if (states_[i].finished) done.push_back(std::move(summary.outcomes[i]));
      }
      summary.outcomes = std::move(done);
    }
    summary.run_id = record_.info.run_id;
    if (!record_.finished) summary.seconds = last_time_ - record_.started;
    record_.info.output = folder_;
    return std::move(record_);
  }

 private:
  struct State {
    std::string id;
    bool started = false;
    bool finished = false;
    std::string request;  // the last one that finished
  };

  Status take(const std::string& name, Json& json) {
    last_time_ = std::max(last_time_, json.value("t", 0.0));
    if (name == event::kRunStarted) return run_started(json);
    if (!begun_) return invalid(fmt::format("{} before run_started", name));
    if (name == event::kRunFinished) run_finished(json);
    if (name == event::kLoadFinished) ++record_.summary.loads;
    if (name == event::kWorkerCrashed) ++record_.summary.crashes;
    if (!json.contains("case") || json["case"].get<std::string>().empty()) return {};
    const size_t index = index_of(json["case"].get<std::string>());
    if (name == event::kCasePlanned) planned(index, json);
    if (name == event::kCaseStarted) {
      states_[index].started = true;
      record_.summary.outcomes[index].name = json.value("name", record_.summary.outcomes[index].name);
    }
    if (name == event::kRequestFinished) states_[index].request = json.value("request", "");
    return name == event::kCaseFinished ? case_finished(index, json) : Status();
  }

  Status run_started(const Json& json) {
    const int schema = json.value("schema", 0);
    if (schema != kEventSchema) {
      return invalid(
          fmt::format("schema {}, this version reads {}; use the assay that wrote it", schema, kEventSchema));
    }
    begun_ = true;
    record_.finished = false;
    record_.info.run_id = json.value("run_id", "");
    record_.info.cases = json.value("cases", size_t{0});
    record_.info.filtered = json.value("filtered", size_t{0});
    record_.info.groups = json.value("groups", size_t{0});
    record_.command = json.value("command", std::vector<std::string>());
    record_.environment = json.value("environment", "");
    record_.platform = json.value("platform", "");
    if (record_.started == 0) record_.started = json.value("t", 0.0);
    const Json options = json.value("options", Json::object());
    record_.info.jobs = options.value("jobs", 1);
    record_.strict = options.value("strict", false);
    return {};
  }

  void run_finished(const Json& json) {
    record_.finished = true;
    record_.summary.seconds = json.value("seconds", 0.0);
    record_.summary.cancelled = json.value("cancelled", false);
  }

  size_t index_of(const std::string& id) {
    const auto [place, added] = by_id_.emplace(id, states_.size());
    if (added) {
      states_.push_back({.id = id, .request = ""});
      record_.summary.outcomes.emplace_back();
      record_.summary.outcomes.back().name = id;
    }
    return place->second;
  }

  void planned(size_t index, const Json& json) {
    CaseOutcome& outcome = record_.summary.outcomes[index];
    outcome.name = json.value("name", outcome.name);
    outcome.path = json.value("path", "");
    outcome.model = json.value("model", "");
    outcome.metrics = json.value("metrics", std::vector<std::string>());
    outcome.relation = json.value("relation", "");
    outcome.reproduce = json.value("reproduce", "");
  }

  // The first verdict of a case stands.
  Status case_finished(size_t index, Json& json) {
    if (states_[index].finished) return {};
    Json verdict = json.value("verdict", Json::object());
    if (detail_ == Detail::kVerdicts) verdict["metrics"] = Json::array();
    Result<CaseVerdict> parsed = parse_case_verdict(verdict);
    if (!parsed) return parsed.status();
    Result<CaseSummary> summary = parse_case_summary(json.value("summary", Json::object()));
    if (!summary) return summary.status();
    CaseOutcome& outcome = record_.summary.outcomes[index];
    outcome.name = json.value("name", outcome.name);
    outcome.verdict = *std::move(parsed);
    outcome.summary = *std::move(summary);
    if (const auto made = json.find("provenance"); made != json.end()) {
      if (Result<Provenance> provenance = parse_provenance(made->dump())) outcome.provenance = *std::move(provenance);
    }
    outcome.actual = present_path(json.value("actual", ""), folder_, states_[index].id);
    outcome.log = present_path(json.value("log", ""), folder_, states_[index].id);
    for (const Json& entry : json.value("repeats", Json::array())) {
      Result<Repeat> repeat = parse_repeat(entry);
      if (!repeat) return repeat.status();
      repeat->actual = present_path(repeat->actual, folder_, states_[index].id);
      outcome.repeats.push_back(*std::move(repeat));
    }
    states_[index].finished = true;
    return {};
  }

  // A case without a verdict gets the one that a run which was killed leaves it.
  void settle(size_t index) {
    const State& state = states_[index];
    if (state.finished) return;
    CaseOutcome& outcome = record_.summary.outcomes[index];
    if (state.started) {
      ++record_.unfinished;
      const std::string after =
          state.request.empty() ? "" : fmt::format(" (its last finished request is {})", state.request);
      outcome.verdict.verdict = Verdict::kCrashed;
      outcome.verdict.reason = "did not finish: the run ended while this case ran" + after;
      std::error_code code;
      const fs::path log = folder_ / "cases" / state.id / "engine.log";
      if (fs::exists(log, code)) outcome.log = log.string();
    } else {
      ++record_.never_started;
      outcome.verdict.verdict = Verdict::kInfra;
      outcome.verdict.reason = "never started: the run ended before its turn came";
    }
  }

  const fs::path& folder_;
  Detail detail_;
  RunRecord record_;
  std::vector<State> states_;  // parallel to the outcomes
  std::map<std::string, size_t> by_id_;
  bool begun_ = false;
  double last_time_ = 0;
};

}  // namespace

Result<RunRecord> read_run(const fs::path& folder, Detail detail) {
  const fs::path file = folder / "results.jsonl";
  std::error_code code;
  if (!fs::is_directory(folder, code)) {
    return not_found(fmt::format("{}: no such folder; expected the output folder of a run", folder.string()));
  }
  if (!fs::exists(file, code)) {
    return not_found(fmt::format("{}: no results.jsonl in it; expected the output folder of a run", folder.string()));
  }
  std::ifstream stream(file, std::ios::binary);
  if (!stream || fs::is_directory(file, code)) return infra(file.string() + ": cannot be read; check the permissions");
  Reader reader(folder, detail);
  std::string text;
  for (size_t number = 1; std::getline(stream, text); ++number) {
    if (stream.eof()) break;  // no newline: a torn line is no line
    if (text.empty()) continue;
    if (const Status status = reader.line(text); !status.ok()) {
      return status.with(fmt::format("{}:{}", file.string(), number));
    }
  }
  Result<RunRecord> record = reader.finish();
  return record ? std::move(record) : record.status().with(file.string());
}

}  // namespace assay::run
