#include "core/run/resume.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>
#include <set>
#include <system_error>
#include <utility>

#include "core/run/case_digest.h"
#include "core/run/events.h"
#include "core/run/relation_rows.h"
#include "core/run/run_header.h"
#include "core/run/secrets.h"
#include "core/run/shards.h"

namespace assay::run {
namespace {

using Json = nlohmann::ordered_json;
namespace fs = std::filesystem;

constexpr size_t kMostNamed = 10;

std::string case_of(const CaseOutcome& outcome) { return case_of_row(outcome.name, outcome.relation); }

std::vector<std::string> differences(const RunRecord& record, const RunOptions& options) {
  Json asked = options_json(options);
  redact(secrets_of(options, {}), &asked);  // as the journal has them
  std::vector<std::string> lines =
      option_differences(Json::parse(record.options.empty() ? "{}" : record.options), asked);
  const auto compare = [&lines](const char* thing, const std::string& recorded, const std::string& now) {
    if (recorded != now) lines.push_back(fmt::format("{}: recorded '{}', now '{}'", thing, recorded, now));
  };
  compare("environment", record.environment, options.environment_name);
  compare("platform", record.platform, options.platform);
  if (!record.version.empty()) compare("version of assay", record.version, options.assay_version);
  return lines;
}

// Leading repeats that say something about the engine.
size_t usable_repeats(const RowRecord& row) {
  size_t count = 0;
  for (const std::string& line : row.repeats) {
    const Result<CaseVerdict> verdict = parse_case_verdict(Json::parse(line).at("verdict"));  // read_run() saw to both
    if (!verdict || verdict->verdict == Verdict::kInfra) break;
    ++count;
  }
  return count;
}

// The cases of a run that was killed before it had written them all down.
Result<std::set<std::string>> planned_names(const RunOptions& options, const RunRecord& record) {
  std::set<std::string> names;
  if (record.info.shard.index == 0) {
    for (const TestCase& test : options.cases) names.insert(test.name);
    return names;
  }
  const Result<ShardFile> file = read_shard_file(options.output / kShardsFile);
  if (!file) return file.status();
  for (const ShardedCase& one : file->cases) {
    if (one.shard == record.info.shard.index) names.insert(one.name);
  }
  return names;
}

Status refuse(const fs::path& folder, const std::vector<std::string>& lines) {
  std::string text = fmt::format("{}: cannot be resumed, this would be another run: ", folder.string());
  for (size_t i = 0; i < lines.size(); ++i) text += (i > 0 ? "; " : "") + lines[i];
  return invalid(text + "; leave the options out or start a new run");
}

void choose(Resumption& made, const RunOptions& options, const std::map<std::string, size_t>& tests) {
  std::map<std::string, bool> is_changed;  // by name of the case
  const discover::Variables variables = variables_of(options);
  for (size_t i = 0; i < made.record.rows.size(); ++i) {
    const RowRecord& row = made.record.rows[i];
    const CaseOutcome& outcome = made.record.summary.outcomes[i];
    const std::string& name = made.case_of[i];
    const auto [changed, is_new] = is_changed.try_emplace(name, false);
    if (is_new && !row.digest.empty()) {
      const size_t at = tests.at(name);
      const CaseSettings own = options.settings.empty() ? CaseSettings() : options.settings[at];
      changed->second = case_digest(options.cases[at], variables, own) != row.digest;
    }
    const Verdict verdict = outcome.verdict.verdict;
    const bool asked = row.finished && std::count(options.rerun.begin(), options.rerun.end(), verdict) > 0;
    if (changed->second) made.changed.push_back(outcome.id);
    made.again[i] = !row.finished || verdict == Verdict::kInfra || asked || changed->second;
    if (!made.again[i]) continue;
    made.names.insert(name);
    if (!changed->second && !asked) made.repeats[i] = usable_repeats(row);
  }
}

void erase_rows(Plan& plan, const std::vector<bool>& erased) {
  std::vector<size_t> place(plan.cases.size());
  std::vector<PlannedCase> left;
  for (size_t i = 0; i < plan.cases.size(); ++i) {
    place[i] = left.size();
    if (!erased[i]) left.push_back(std::move(plan.cases[i]));
  }
  plan.cases = std::move(left);
  for (Group& group : plan.groups) {
    std::erase_if(group.cases, [&](size_t index) { return erased[index]; });
    for (size_t& index : group.cases) index = place[index];
  }
  std::erase_if(plan.groups, [](const Group& group) { return group.cases.empty(); });
}

}  // namespace

Result<Resumption> begin_resume(const RunOptions& options) {
  if (Status there = check_run_folder(options.output); !there.ok()) return there;
  Result<FolderLock> lock = FolderLock::take(options.output);
  if (!lock) return lock.status();
  Result<RunRecord> record = read_run(options.output, Detail::kFull, true);
  if (!record) return record.status();
  const size_t rows = record->rows.size();
  Resumption made{.lock = *std::move(lock),
                  .record = *std::move(record),
                  .again = std::vector<bool>(rows),
                  .dropped = std::vector<bool>(rows),
                  .repeats = std::vector<size_t>(rows),
                  .changed = {},
                  .names = {},
                  .row_of = {},
                  .case_of = {}};
  std::vector<std::string> lines = differences(made.record, options);
  std::map<std::string, size_t> tests;  // index of RunOptions::cases
  for (size_t at = 0; at < options.cases.size(); ++at) tests.emplace(options.cases[at].name, at);
  std::set<std::string> absent;
  for (size_t i = 0; i < rows; ++i) {
    const CaseOutcome& outcome = made.record.summary.outcomes[i];
    made.row_of.emplace(outcome.id, i);
    made.case_of.push_back(case_of(outcome));
    if (tests.count(made.case_of[i]) == 0) absent.insert(made.case_of[i]);
  }
  size_t named = 0;
  for (const std::string& name : absent) {
    if (++named > kMostNamed) break;
    lines.push_back(fmt::format("case {}: recorded, now not found", name));
  }
  if (absent.size() > kMostNamed) lines.push_back(fmt::format("and {} more cases", absent.size() - kMostNamed));
  if (!lines.empty()) return refuse(options.output, lines);
  choose(made, options, tests);
  if (rows < made.record.info.cases && !made.record.finished) {
    Result<std::set<std::string>> names = planned_names(options, made.record);
    if (!names) return names.status();
    made.names.merge(*names);
  }
  return made;
}

void settle_resume(Resumption* resumption, Plan* plan) {
  Resumption& r = *resumption;
  std::map<std::string, std::set<std::string>> recorded;  // ids by case
  std::map<std::string, std::set<std::string>> planned;
  for (size_t i = 0; i < r.case_of.size(); ++i) recorded[r.case_of[i]].insert(r.record.summary.outcomes[i].id);
  for (const PlannedCase& one : plan->cases) planned[case_of(one.outcome)].insert(one.outcome.id);
  const auto same = [&](const std::string& name) { return recorded[name] == planned[name]; };
  std::vector<bool> erased(plan->cases.size());
  for (size_t i = 0; i < plan->cases.size(); ++i) {
    const std::string name = case_of(plan->cases[i].outcome);
    const auto row = r.row_of.find(plan->cases[i].outcome.id);
    if (row == r.row_of.end()) continue;
    if (same(name)) {
      erased[i] = !r.again[row->second];
    } else {  // the rows of the case have become others: none of the earlier ones counts
      r.again[row->second] = true;
      r.repeats[row->second] = 0;
    }
    r.repeats[row->second] = std::min(r.repeats[row->second], static_cast<size_t>(plan->cases[i].order.repeats));
  }
  for (size_t i = 0; i < r.case_of.size(); ++i) {
    const std::string& id = r.record.summary.outcomes[i].id;
    if (r.names.count(r.case_of[i]) == 0 || planned[r.case_of[i]].count(id) > 0) continue;
    r.dropped[i] = true;
    r.again[i] = false;
  }
  erase_rows(*plan, erased);
}

Json resumed_event(const Resumption& r, const RunOptions& options) {
  Json json = make_event(event::kRunResumed);
  json["run_id"] = r.record.info.run_id;
  json["version"] = options.assay_version;
  json["command"] = command::Redactor().words(options.command);
  Json rerun = Json::array();
  Json dropped = Json::array();
  Json repeats = Json::object();
  size_t kept = 0;
  for (size_t i = 0; i < r.again.size(); ++i) {
    const std::string& id = r.record.summary.outcomes[i].id;
    if (r.again[i]) rerun.push_back(id);
    if (r.dropped[i]) dropped.push_back(id);
    if (r.again[i] && r.repeats[i] > 0) repeats[id] = r.repeats[i];
    kept += !r.again[i] && !r.dropped[i] ? 1 : 0;
  }
  json["kept"] = kept;
  json["rerun"] = std::move(rerun);
  json["changed"] = r.changed;
  json["dropped"] = std::move(dropped);
  json["repeats"] = std::move(repeats);
  json["earlier_seconds"] = r.record.summary.seconds;
  return json;
}

std::string describe(const Resumption& r) {
  const std::set<std::string> differ(r.changed.begin(), r.changed.end());
  std::map<std::string, size_t> why;
  for (size_t i = 0; i < r.again.size(); ++i) {
    if (!r.again[i]) continue;
    const CaseOutcome& outcome = r.record.summary.outcomes[i];
    const bool changed = differ.count(outcome.id) > 0;
    ++why[!r.record.rows[i].finished ? "unfinished"
          : changed                  ? "changed since"
                                     : std::string(to_string(outcome.verdict.verdict))];
  }
  const auto count = static_cast<size_t>(std::count(r.again.begin(), r.again.end(), true));
  std::string text = fmt::format("resumed: {} of {} cases are run again", count, r.again.size());
  std::string list;
  for (const auto& [reason, number] : why) list += fmt::format("{}{} {}", list.empty() ? "" : ", ", number, reason);
  if (!list.empty()) text += " (" + list + ")";
  for (size_t i = 0; i < std::min(r.changed.size(), kMostNamed); ++i) {
    text += fmt::format("{}{}", i == 0 ? "; config, golden or prompts changed: " : ", ", r.changed[i]);
  }
  if (r.changed.size() > kMostNamed) text += fmt::format(" and {} more", r.changed.size() - kMostNamed);
  return text;
}

std::vector<CaseOutcome> all_outcomes(Resumption& r, Plan& plan) {
  std::vector<CaseOutcome> outcomes;
  std::map<std::string, size_t> run_again;
  for (size_t i = 0; i < plan.cases.size(); ++i) run_again.emplace(plan.cases[i].outcome.id, i);
  for (size_t i = 0; i < r.again.size(); ++i) {
    CaseOutcome& before = r.record.summary.outcomes[i];
    const auto found = run_again.find(before.id);
    if (found == run_again.end()) {
      if (!r.dropped[i]) outcomes.push_back(std::move(before));
    } else {
      outcomes.push_back(std::move(plan.cases[found->second].outcome));
      run_again.erase(found);
    }
  }
  for (size_t i = 0; i < plan.cases.size(); ++i) {  // rows that were not there before
    if (run_again.count(plan.cases[i].outcome.id) > 0) outcomes.push_back(std::move(plan.cases[i].outcome));
  }
  return outcomes;
}

uint64_t next_worker(const fs::path& output) {
  uint64_t next = 0;
  std::error_code code;
  for (fs::directory_iterator at(output / "workers", code), end; !code && at != end; at.increment(code)) {
    const std::string name = at->path().filename().string();
    uint64_t number = 0;
    if (!name.starts_with('w')) continue;
    if (std::from_chars(name.data() + 1, name.data() + name.size(), number).ec == std::errc()) {
      next = std::max(next, number + 1);
    }
  }
  return next;
}

}  // namespace assay::run
