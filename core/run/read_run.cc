#include "core/run/read_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <system_error>
#include <tuple>
#include <utility>

#include "core/golden/json_reason.h"
#include "core/golden/text.h"
#include "core/golden/whole_number.h"
#include "core/run/event_file.h"
#include "core/run/events.h"
#include "core/run/folder_lock.h"

namespace assay::run {
namespace {

using Json = nlohmann::ordered_json;
namespace fs = std::filesystem;

// A path of the journal as it is now: the folder may have been moved as a whole, e.g. out of a CI job, and another run
// may be where it was, whose files are not this run's.
std::string present_path(const std::string& written, const fs::path& folder, const std::string& id) {
  std::error_code code;
  if (written.empty()) return written;
  const std::string own = "/cases/" + id + "/";  // what follows may lie in the folder of a repeat
  const size_t place = written.rfind(own);
  if (place == std::string::npos) return fs::exists(written, code) ? written : "";
  const fs::path here = fs::absolute(folder, code) / "cases" / id / written.substr(place + own.size());
  return fs::exists(here, code) ? here.string() : "";
}

// An id is the path of a folder below OUTPUT/cases.
bool lies_below(const std::string& id) {
  const fs::path path(id);
  if (id.empty() || path.is_absolute() || id.find('\0') != std::string::npos) return false;
  return std::none_of(path.begin(), path.end(), [](const fs::path& part) { return part == ".." || part == "."; });
}

constexpr size_t kShownId = 80;  // code points of one in a message

class Reader {
 public:
  Reader(const fs::path& folder, Detail detail, bool holds_lock)
      : folder_(folder), detail_(detail), holds_lock_(holds_lock) {}

  Status line(const std::string& text) {
    const auto callback = [this](int /*depth*/, Json::parse_event_t kind, Json& value) {
      if (detail_ == Detail::kFull || kind != Json::parse_event_t::key) return true;
      return value != "evidence" && value != "metrics";
    };
    Json json = Json::parse(text, callback, false);
    constexpr const char* kExpected = "; expected an event of a run: this is no journal, or it was damaged";
    if (!json.is_object()) return invalid(std::string("not a JSON object") + kExpected);
    const auto name = json.find("event");
    if (name == json.end() || !name->is_string()) return invalid(std::string("no \"event\"") + kExpected);
    try {
      return take(name->get<std::string>(), json);
    } catch (const std::exception& failure) {  // a member of another type
      return invalid(name->get<std::string>() + ": " + json::reason_of(failure.what()));
    }
  }

  Result<RunRecord> finish() {
    if (!begun_)
      return invalid("no run_started line: the run ended before it had written anything down; start it anew");
    RunSummary& summary = record_.summary;
    record_.running = !record_.finished && !holds_lock_ && !lock_holder(folder_).empty();
    if (!record_.finished && !record_.running) {
      record_.unplanned = record_.info.cases - std::min(record_.info.cases, states_.size());
    }
    for (size_t i = 0; i < states_.size(); ++i) settle(i);
    std::vector<CaseOutcome> outcomes;
    for (size_t i = 0; i < states_.size(); ++i) {
      if (states_[i].dropped || (record_.running && !states_[i].row.finished)) continue;
      outcomes.push_back(std::move(summary.outcomes[i]));
      record_.rows.push_back(std::move(states_[i].row));
    }
    summary.outcomes = std::move(outcomes);
    summary.run_id = record_.info.run_id;
    if (!record_.finished) summary.seconds = earlier_seconds_ + last_time_ - session_started_;
    record_.info.output = folder_;
    return std::move(record_);
  }

 private:
  struct State {
    RowRecord row;
    std::string id;
    bool dropped = false;  // its case has other rows since the run was resumed
    std::string request;   // the last one that finished
  };

  Status take(const std::string& name, Json& json) {
    if (name == event::kRunResumed && begun_) run_resumed(json);
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
      states_[index].row.started = true;
      record_.summary.outcomes[index].name = json.value("name", record_.summary.outcomes[index].name);
    }
    if (name == event::kRequestFinished) states_[index].request = json.value("request", "");
    if (name == event::kRepeatFinished && detail_ == Detail::kFull) return repeat_finished(index, json);
    return name == event::kCaseFinished ? case_finished(index, json) : Status();
  }

  Status run_started(const Json& json) {
    const int schema = json::whole(json, "schema", 0);
    if (schema != kEventSchema) {
      return invalid(
          fmt::format("schema {}, this version reads {}; use the assay that wrote it", schema, kEventSchema));
    }
    begun_ = true;
    record_.finished = false;
    record_.info.run_id = json.value("run_id", "");
    record_.info.cases = json::whole(json, "cases", size_t{0});
    record_.info.filtered = json::whole(json, "filtered", size_t{0});
    record_.info.groups = json::whole(json, "groups", size_t{0});
    record_.command = json.value("command", std::vector<std::string>());
    record_.environment = json.value("environment", "");
    record_.platform = json.value("platform", "");
    if (record_.started == 0) record_.started = session_started_ = json.value("t", 0.0);
    record_.version = json.value("version", "");
    record_.directory = json.value("directory", "");
    record_.run_command = json.value("run_command", std::vector<std::string>());
    if (json.contains("merged")) record_.merged = json["merged"].dump();
    if (json.contains("shard")) record_.info.shard = shard_of(json["shard"]);
    const Json options = json.value("options", Json::object());
    record_.info.jobs = json::whole(options, "jobs", 1);
    record_.strict = options.value("strict", false);
    record_.options = options.dump();
    return {};
  }

  static ShardInfo shard_of(const Json& json) {
    const ShardInfo shard{.index = json::whole(json, "index", 0U),
                          .count = json::whole(json, "count", 0U),
                          .cases = json::whole(json, "cases", size_t{0}),
                          .rows = json::whole(json, "rows", size_t{0}),
                          .cases_here = json::whole(json, "cases_here", size_t{0}),
                          .loads = json::whole(json, "loads", uint64_t{0}),
                          .estimated = json::whole(json, "estimated", size_t{0}),
                          .predicted = {},
                          .case_list = json.value("case_list", ""),
                          .partition = json.value("partition", "")};
    if (shard.index >= 1 && shard.index <= shard.count) return shard;
    throw std::runtime_error(fmt::format("shard {} of {}; expected 1 to {}: the journal was damaged", shard.index,
                                         shard.count, shard.count));
  }

  // What is run again is as if it had never been run, apart from the repeats that count.
  void run_resumed(const Json& json) {
    earlier_seconds_ = json.value("earlier_seconds", 0.0);
    session_started_ = json.value("t", last_time_);
    ++record_.sessions;
    record_.finished = false;
    record_.summary.cancelled = false;
    for (const Json& id : json.value("dropped", Json::array())) states_[index_of(id)].dropped = true;
    const Json repeats = json.value("repeats", Json::object());
    for (const Json& entry : json.value("rerun", Json::array())) {
      const std::string id = entry;
      const size_t index = index_of(id);
      State fresh{.row = std::move(states_[index].row), .id = id, .request = ""};
      fresh.row.started = fresh.row.finished = false;
      fresh.row.repeats.resize(std::min(fresh.row.repeats.size(), json::whole(repeats, id.c_str(), size_t{0})));
      states_[index] = std::move(fresh);
      CaseOutcome& outcome = record_.summary.outcomes[index];
      outcome.verdict = {};
      outcome.summary = {};
      outcome.provenance.reset();
      outcome.repeats.clear();
      outcome.actual.clear();
      outcome.log.clear();
    }
  }

  void run_finished(const Json& json) {
    record_.finished = true;
    record_.summary.seconds = json.value("seconds", 0.0);
    record_.summary.cancelled = json.value("cancelled", false);
  }

  size_t index_of(const std::string& id) {
    const auto [place, added] = by_id_.emplace(id, states_.size());
    if (added) {
      if (!lies_below(id)) {
        throw std::runtime_error(
            fmt::format("case {}; expected a path below cases/: the journal was damaged", text::quoted(id, kShownId)));
      }
      states_.push_back({.row = {}, .id = id, .request = ""});
      record_.summary.outcomes.emplace_back();
      record_.summary.outcomes.back().id = id;
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
    states_[index].row.missing = json.value("missing", "");
    states_[index].row.digest = json.value("digest", "");
    states_[index].dropped = false;
  }

  // The first verdict of a case stands.
  // Kept as it is written, for a resumed run to go on from; so its members are of the types that this reads.
  Status repeat_finished(size_t index, const Json& json) {
    if (const Result<CaseVerdict> verdict = parse_case_verdict(json.value("verdict", Json())); !verdict) {
      return verdict.status().with(std::string(event::kRepeatFinished));
    }
    for (const char* text : {"actual", "log", "difference"}) std::ignore = json.value(text, "");
    std::ignore = json.value("engine_failed", false);
    states_[index].row.repeats.push_back(json.dump());
    return {};
  }

  Status case_finished(size_t index, Json& json) {
    if (states_[index].row.finished) return {};
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
    states_[index].row.finished = true;
    return {};
  }

  // A case without a verdict gets the one that a run which was killed leaves it.
  void settle(size_t index) {
    const State& state = states_[index];
    if (state.row.finished) return;
    CaseOutcome& outcome = record_.summary.outcomes[index];
    if (state.row.started) {
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
      outcome.verdict.reason =
          state.row.missing.empty() ? "never started: the run ended before its turn came" : state.row.missing;
    }
  }

  const fs::path& folder_;
  Detail detail_;
  RunRecord record_;
  std::vector<State> states_;  // parallel to the outcomes
  std::map<std::string, size_t> by_id_;
  bool holds_lock_;
  bool begun_ = false;
  double last_time_ = 0;
  double session_started_ = 0;
  double earlier_seconds_ = 0;
};

}  // namespace

Result<RunRecord> read_journal(const fs::path& file, Detail detail, bool holds_lock) {
  std::error_code code;
  std::ifstream stream(file, std::ios::binary);
  if (!stream || fs::is_directory(file, code)) {
    return infra(file.string() + ": cannot be read as a file; check what it is, and its permissions");
  }
  const fs::path folder = file.has_parent_path() ? file.parent_path() : fs::path(".");
  Reader reader(folder, detail, holds_lock);
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

std::string cut_off_text(const RunRecord& record) {
  const std::string folder = record.info.output.string();
  return fmt::format(
      "{}: the run ended before it had written down {} of its {} cases; go on with it: assay run --resume {}", folder,
      record.unplanned, record.info.cases, folder);
}

Status check_run_folder(const fs::path& folder) {
  constexpr const char* kExpected = "; expected the output folder of a run";
  std::error_code code;
  const fs::file_status found = fs::status(folder, code);
  if (found.type() == fs::file_type::not_found) return not_found(folder.string() + ": no such folder" + kExpected);
  if (!fs::status_known(found))
    return infra(fmt::format("{}: cannot be looked at: {}", folder.string(), code.message()));
  if (!fs::is_directory(found)) return invalid(folder.string() + ": is no folder" + kExpected);
  const fs::file_status journal = fs::status(folder / "results.jsonl", code);
  if (journal.type() == fs::file_type::not_found) {
    return not_found(folder.string() + ": no results.jsonl in it" + kExpected);
  }
  if (fs::status_known(journal)) return {};
  return infra(fmt::format("{}: its results.jsonl cannot be looked at: {}", folder.string(), code.message()));
}

Result<RunRecord> read_run(const fs::path& folder, Detail detail, bool holds_lock) {
  if (Status there = check_run_folder(folder); !there.ok()) return there;
  return read_journal(folder / "results.jsonl", detail, holds_lock);
}

}  // namespace assay::run
