#include "core/run/merge.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <system_error>
#include <unordered_map>
#include <utility>

#include "core/golden/text.h"
#include "core/run/durations.h"
#include "core/run/event_file.h"
#include "core/run/events.h"
#include "core/run/folder_lock.h"
#include "core/run/merge_checks.h"
#include "core/run/merge_folders.h"
#include "core/run/relation_rows.h"
#include "core/run/repeats.h"
#include "core/run/reproduce.h"
#include "core/run/run_header.h"
#include "core/run/shards.h"

namespace assay::run {
namespace {

using Json = nlohmann::ordered_json;
namespace fs = std::filesystem;

constexpr size_t kPiece = size_t{4} << 20;  // bytes written at once
constexpr size_t kMostNamed = 5;

// Where a row of the new run comes from.
struct Source {
  size_t run = 0;
  size_t row = 0;
  std::string missing;  // of a shard that is not there: why; `run` and `row` mean nothing
  CaseOutcome outcome;  // of such a row
};

// Without a verdict that says something about the engine.
bool empty_handed(const RunRecord& run, size_t row) {
  return !run.rows[row].finished || run.summary.outcomes[row].verdict.verdict == Verdict::kInfra;
}

class Merger {
 public:
  explicit Merger(const MergeOptions& options) : options_(options) {}

  Result<Merged> merge() {
    if (Status read = read_all(); !read.ok()) return read;
    if (Status fit = check_shards(runs_, options_.allow_duplicates); !fit.ok()) return fit;
    if (!options_.allow_different) {
      if (Status same = check_same_request(runs_); !same.ok()) return same;
    }
    if (Status collected = collect(); !collected.ok()) return collected;
    if (Status known = add_missing(); !known.ok()) return known;
    if (Status apart = check_apart(); !apart.ok()) return apart;
    std::error_code code;
    fs::create_directories(options_.output, code);
    if (code) return infra(fmt::format("{}: {}; choose another --output", options_.output.string(), code.message()));
    const bool had_lock = fs::exists(options_.output / ".lock", code);
    Result<FolderLock> lock = FolderLock::take(options_.output);
    if (!lock) return lock.status();
    if (Status ready = check_output(had_lock); !ready.ok()) {
      if (!had_lock) fs::remove(options_.output / ".lock", code);  // it would mark the folder as one of ours
      return ready;
    }
    const fs::path journal = options_.output / "results.jsonl";
    fs::remove(journal, code);  // of an earlier merge: half of two would be none
    if (code) return infra(fmt::format("{}: {}; choose another --output", journal.string(), code.message()));
    std::vector<CaseFolder> folders;
    for (const Source& source : rows_) {
      if (!source.missing.empty()) continue;
      const std::string& id = runs_[source.run].summary.outcomes[source.row].id;
      folders.push_back({id, folders_[source.run] / "cases" / id});
    }
    if (Status placed = place_cases(options_.output, folders, options_.copy); !placed.ok()) return placed;
    Merged merged{.record = make_record(), .notes = std::move(notes_)};
    if (Status written = write_journal(merged.record); !written.ok()) return written;
    const std::string durations = durations_json(merged.record.summary.outcomes);
    if (Status written = write_file(options_.output / "durations.json", durations); !written.ok()) return written;
    return merged;
  }

 private:
  Status read_all() {
    std::map<fs::path, fs::path> seen;
    for (const fs::path& folder : options_.runs) {
      std::error_code code;
      const fs::path real = fs::canonical(folder, code);
      const auto [place, is_new] = seen.emplace(code ? folder : real, folder);
      if (!is_new) return invalid(fmt::format("{} is given twice; name each run once", folder.string()));
      Result<RunRecord> run = read_run(folder);
      if (!run) return run.status();
      if (run->running) {
        return invalid(fmt::format("{}: the run is still going on, {} has it; wait for its end", folder.string(),
                                   lock_holder(folder)));
      }
      if (run->unplanned > 0 && run->info.shard.index == 0) return invalid(cut_off_text(*run));
      folders_.push_back(real);
      runs_.push_back(*std::move(run));
    }
    return {};
  }

  // Every row that a run has, each once.
  Status collect() {
    std::unordered_map<std::string, size_t> places;  // by id
    std::vector<std::string> twice;
    for (size_t i = 0; i < runs_.size(); ++i) {
      for (size_t row = 0; row < runs_[i].rows.size(); ++row) {
        const std::string& id = runs_[i].summary.outcomes[row].id;
        const auto [place, is_new] = places.emplace(id, rows_.size());
        if (is_new) {
          rows_.push_back({.run = i, .row = row, .missing = "", .outcome = {}});
          continue;
        }
        Source& other = rows_[place->second];
        const bool placeholder = !runs_[i].rows[row].missing.empty();
        const bool was_placeholder = !runs_[other.run].rows[other.row].missing.empty();
        if (placeholder) continue;
        if (!was_placeholder) {
          twice.push_back(
              fmt::format("{} in {} and {}", id, runs_[other.run].info.output.string(), runs_[i].info.output.string()));
        }
        if (was_placeholder || stands_before({.run = i, .row = row, .missing = "", .outcome = {}}, other)) {
          other.run = i;
          other.row = row;
        }
      }
    }
    if (twice.empty()) return {};
    std::string text;
    for (size_t i = 0; i < std::min(twice.size(), kMostNamed); ++i) text += (i > 0 ? "; " : "") + twice[i];
    if (twice.size() > kMostNamed) text += fmt::format("; and {} more", twice.size() - kMostNamed);
    if (!options_.allow_duplicates) {
      return invalid("cases that are there twice: " + text +
                     "; leave one of the runs out, or take the worse verdicts with --allow-duplicates");
    }
    notes_.push_back("cases that were there twice, the worse verdict stays: " + text);
    return {};
  }

  // Whether of two rows of one case `a` is the one to keep.
  bool stands_before(const Source& a, const Source& b) const {
    const bool empty_a = empty_handed(runs_[a.run], a.row);
    const bool empty_b = empty_handed(runs_[b.run], b.row);
    if (empty_a != empty_b) return empty_b;
    return runs_[a.run].summary.outcomes[a.row].verdict.verdict > runs_[b.run].summary.outcomes[b.row].verdict.verdict;
  }

  // The division that the shards say they are of; nothing where it cannot be read any more.
  Result<ShardFile> division() const {
    Status failure = not_found("no run is a shard");
    for (size_t i = 0; i < runs_.size(); ++i) {
      if (runs_[i].info.shard.index == 0) continue;
      Result<ShardFile> file = read_shard_file(folders_[i] / kShardsFile);
      if (file && file->partition == runs_[i].info.shard.partition) return file;
      failure = file ? invalid((folders_[i] / kShardsFile).string() + ": of another division") : file.status();
    }
    return failure;
  }

  // Puts shards into the order of the run that they divide, with rows for what no shard has. kInvalid: a shard has a
  // case that the division does not.
  Status add_missing() {
    const std::vector<uint32_t> missing = missing_shards(runs_);
    const bool has_shards =
        std::any_of(runs_.begin(), runs_.end(), [](const auto& r) { return r.info.shard.index > 0; });
    if (!has_shards) return {};
    const auto note = [&](uint32_t index) {
      notes_.push_back(fmt::format("shard {} of {} is missing", index, count()));
    };
    const Result<ShardFile> file = division();
    if (!file) {
      for (const RunRecord& run : runs_) {
        if (run.unplanned > 0) return invalid(cut_off_text(run));
      }
      std::for_each(missing.begin(), missing.end(), note);
      notes_.push_back("the order of the cases is that of the shards: " + file.status().message());
      for (const uint32_t index : missing) add_row(fmt::format("shard {} of {}", index, count()), "", {}, index, false);
      return {};
    }
    std::set<uint32_t> lacking;                     // whose cases came in through no earlier merge either
    std::unordered_map<std::string, size_t> order;  // of cases
    std::set<std::string> names;
    for (const Source& source : rows_) names.insert(outcome_of(source).name);
    for (const ShardedCase& one : file->cases) {
      order.emplace(one.name, order.size());
      const bool there = std::binary_search(missing.begin(), missing.end(), one.shard) == false;
      for (const std::string& relation : one.relations) {
        const std::string name = row_name(one.name, relation);
        // A case that was settled before it was planned has one row of its own name for all relations.
        if (names.count(name) > 0 || names.count(one.name) > 0) continue;
        add_row(name, relation, one, one.shard, there);
        if (!there) lacking.insert(one.shard);
      }
    }
    for (const Source& source : rows_) {
      if (!source.missing.empty() || runs_[source.run].info.shard.index == 0) continue;
      const CaseOutcome& outcome = outcome_of(source);
      if (order.count(case_of_row(outcome.name, outcome.relation)) > 0) continue;
      return invalid(
          fmt::format("{}: has case {}, which the division in {} does not know: one of both was damaged; run "
                      "the shard again",
                      runs_[source.run].info.output.string(), text::printable(outcome.name), kShardsFile));
    }
    std::for_each(lacking.begin(), lacking.end(), note);
    const auto place = [&](const Source& source) {
      const CaseOutcome& outcome = outcome_of(source);
      const auto found = order.find(case_of_row(outcome.name, outcome.relation));
      return found == order.end() ? order.size() : found->second;
    };
    std::vector<std::pair<size_t, size_t>> places;
    for (size_t i = 0; i < rows_.size(); ++i) places.emplace_back(place(rows_[i]), i);
    std::sort(places.begin(), places.end());
    std::vector<Source> sorted;
    for (const auto& [at, i] : places) sorted.push_back(std::move(rows_[i]));
    rows_ = std::move(sorted);
    return {};
  }

  uint32_t count() const {
    for (const RunRecord& run : runs_) {
      if (run.info.shard.index > 0) return run.info.shard.count;
    }
    return 0;
  }

  // `there`: the shard is one of the merged runs, but was cut off before it had written this case down.
  void add_row(const std::string& name, const std::string& relation, const ShardedCase& one, uint32_t shard,
               bool there) {
    const char* what =
        there ? "ended before it wrote this case down" : "is missing: none of the merged runs has this case";
    Source source{.missing = fmt::format("shard {} of {} {}", shard, count(), what), .outcome = {}};
    CaseOutcome& outcome = source.outcome;
    outcome.id = id_of_case(name);
    outcome.name = name;
    outcome.relation = relation;
    outcome.path = one.path;
    outcome.model = one.model;
    outcome.reproduce = one.path.empty() ? "" : "assay run " + shell_word(one.path);
    outcome.verdict = {Verdict::kInfra, source.missing, "", {}};
    rows_.push_back(std::move(source));
  }

  const CaseOutcome& outcome_of(const Source& source) const {
    return source.missing.empty() ? runs_[source.run].summary.outcomes[source.row] : source.outcome;
  }

  // Before anything is made in it.
  Status check_apart() const {
    std::error_code code;
    const fs::path output = fs::weakly_canonical(options_.output, code);
    if (std::find(folders_.begin(), folders_.end(), output) != folders_.end()) {
      return invalid(
          fmt::format("--output {}: is one of the runs to merge; choose another folder", options_.output.string()));
    }
    if (fs::exists(output, code) && !fs::is_directory(output, code)) {
      return invalid(fmt::format("--output {}: is no folder; choose another", options_.output.string()));
    }
    return {};
  }

  // An output folder is new, empty, or holds an earlier merge. Its lock is ours; `had_lock`: it had the file before.
  Status check_output(bool had_lock) const {
    const fs::path& output = options_.output;
    const auto there_is = [&output](const char* name, bool* found) {
      std::error_code code;
      const fs::file_status status = fs::status(output / name, code);
      *found = fs::exists(status);
      if (fs::status_known(status)) return Status();
      return infra(fmt::format("{}: cannot be looked at: {}", (output / name).string(), code.message()));
    };
    std::array<bool, 3> found{};
    constexpr std::array<const char*, 3> kNames = {"results.jsonl", "cases", "workers"};
    for (size_t i = 0; i < kNames.size(); ++i) {
      if (Status known = there_is(kNames[i], &found[i]); !known.ok()) return known;
    }
    const auto [journal, cases, workers] = found;
    // A merge that was interrupted has a lock and no workers; any other folder with cases is not ours to empty.
    if (!journal) return cases && !(had_lock && !workers) ? other_run() : Status();
    const Result<RunRecord> there = read_run(output, Detail::kVerdicts, true);
    if (there && !there->merged.empty() && there->sessions > 1) {
      return invalid(
          fmt::format("--output {}: an earlier merge that has been resumed since, whose results would be lost; "
                      "choose a new folder",
                      options_.output.string()));
    }
    return there && !there->merged.empty() ? keeps_all(*there) : other_run();
  }

  // Whether every run of an earlier merge is merged again or still there: else its results are nowhere but in it.
  Status keeps_all(const RunRecord& earlier) const {
    for (const Json& entry : Json::parse(earlier.merged)) {
      const std::string run_id = entry.value("run_id", "");
      const auto again = [&](const RunRecord& run) { return run.info.run_id == run_id; };
      if (std::any_of(runs_.begin(), runs_.end(), again)) continue;
      const Result<RunRecord> there = read_run(entry.value("folder", ""), Detail::kVerdicts);
      if (there && there->info.run_id == run_id) continue;
      return invalid(
          fmt::format("--output {}: an earlier merge that alone has the results of run {}, which is no longer "
                      "in {}; choose a new folder, and merge this one into it",
                      options_.output.string(), text::printable(run_id), text::printable(entry.value("folder", ""))));
    }
    return {};
  }

  Status other_run() const {
    return invalid(fmt::format("--output {}: holds another run; choose a new folder", options_.output.string()));
  }

  RunRecord make_record() {
    RunRecord record = {};
    const RunRecord& first = runs_.front();
    record.info.run_id = first.info.run_id + "-merged";
    record.info.output = options_.output;
    record.info.cases = rows_.size();
    record.info.jobs = 0;
    record.version = options_.assay_version;
    record.command = options_.command;
    record.run_command = common_command(first.run_command.empty() ? first.command : first.run_command);
    record.directory = first.directory;
    record.options = first.options;
    record.environment = first.environment;
    record.platform = first.platform;
    record.finished = true;
    record.started = first.started;
    Json merged = Json::array();
    std::set<std::string> divisions;
    for (size_t i = 0; i < runs_.size(); ++i) {
      const RunRecord& run = runs_[i];
      Json entry = {{"run_id", run.info.run_id}, {"folder", folders_[i].string()}, {"cases", run.rows.size()}};
      if (run.info.shard.index > 0) entry["shard"] = fmt::format("{}/{}", run.info.shard.index, run.info.shard.count);
      merged.push_back(std::move(entry));
      record.info.groups += run.info.groups;
      record.info.jobs += run.info.jobs;
      record.strict = record.strict || run.strict;
      record.started = std::min(record.started, run.started);
      record.summary.seconds = std::max(record.summary.seconds, run.summary.seconds);
      record.summary.loads += run.summary.loads;
      record.summary.crashes += run.summary.crashes;
      record.summary.cancelled = record.summary.cancelled || run.summary.cancelled;
      const bool counted = run.info.shard.index > 0 && !divisions.insert(run.info.shard.partition).second;
      if (!counted) record.info.filtered += run.info.filtered;  // each shard counts for all of them
    }
    record.merged = merged.dump(-1, ' ', false, Json::error_handler_t::replace);
    record.summary.run_id = record.info.run_id;
    for (Source& source : rows_) {
      if (!source.missing.empty()) {
        record.rows.push_back({.missing = source.missing});
        record.summary.outcomes.push_back(std::move(source.outcome));
        ++record.never_started;
        continue;
      }
      RunRecord& run = runs_[source.run];
      RowRecord& row = run.rows[source.row];
      CaseOutcome& outcome = run.summary.outcomes[source.row];
      if (!row.finished) ++(row.started ? record.unfinished : record.never_started);
      for (std::string* path : {&outcome.actual, &outcome.log}) *path = moved(*path, outcome.id);
      for (Repeat& repeat : outcome.repeats) repeat.actual = moved(repeat.actual, outcome.id);
      record.rows.push_back(std::move(row));
      record.summary.outcomes.push_back(std::move(outcome));
    }
    return record;
  }

  // A path of a case in the folder of its run, as it is in the new one.
  std::string moved(const std::string& path, const std::string& id) const {
    const std::string own = "/cases/" + id + "/";
    const size_t place = path.rfind(own);
    if (place == std::string::npos) return path;
    return (options_.output / "cases" / id / path.substr(place + own.size())).string();
  }

  Status write_journal(const RunRecord& record) const {
    const fs::path part = options_.output / "results.jsonl.part";
    Result<EventWriter> writer = EventWriter::create(part);
    if (!writer) return writer.status();
    std::string text = to_line(merged_event(record));
    const auto flush = [&](size_t least) {
      if (text.size() < least || text.empty()) return Status();
      Status written = writer->append(text);
      text.clear();
      return written;
    };
    for (size_t i = 0; i < record.rows.size(); ++i) {
      Json planned = planned_event(record.summary.outcomes[i], record.rows[i].digest);
      if (!record.rows[i].missing.empty()) planned["missing"] = record.rows[i].missing;
      text += to_line(planned);
      if (Status written = flush(kPiece); !written.ok()) return written;
    }
    for (size_t i = 0; i < record.rows.size(); ++i) {
      const CaseOutcome& outcome = record.summary.outcomes[i];
      if (record.rows[i].finished) {
        text += to_line(outcome_event(outcome));
      } else if (record.rows[i].started) {
        Json started = make_event(event::kCaseStarted);
        started["case"] = outcome.id;
        started["name"] = outcome.name;
        text += to_line(started);
      }
      if (Status written = flush(kPiece); !written.ok()) return written;
    }
    text += to_line(finished_event(record.summary, record.strict));
    if (Status written = flush(0); !written.ok()) return written;
    if (Status synced = writer->sync(); !synced.ok()) return synced;
    std::error_code code;
    fs::rename(part, options_.output / "results.jsonl", code);
    return code ? infra(fmt::format("{}: {}", part.string(), code.message())) : Status();
  }

  static Json merged_event(const RunRecord& record) {
    Json json = make_event(event::kRunStarted);
    json["t"] = record.started;
    json["schema"] = kEventSchema;
    json["run_id"] = record.info.run_id;
    json["version"] = record.version;
    json["command"] = record.command;
    json["run_command"] = record.run_command;
    json["directory"] = record.directory;
    json["options"] = Json::parse(record.options.empty() ? "{}" : record.options);
    json["environment"] = record.environment;
    json["platform"] = record.platform;
    json["cases"] = record.info.cases;
    json["filtered"] = record.info.filtered;
    json["groups"] = record.info.groups;
    json["merged"] = Json::parse(record.merged);
    return json;
  }

  const MergeOptions& options_;
  std::vector<RunRecord> runs_;
  std::vector<fs::path> folders_;  // parallel to runs_: absolute, without links
  std::vector<Source> rows_;
  std::vector<std::string> notes_;
};

}  // namespace

Result<Merged> merge_runs(const MergeOptions& options) { return Merger(options).merge(); }

}  // namespace assay::run
