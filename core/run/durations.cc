#include "core/run/durations.h"

#include <fmt/format.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <system_error>

#include "core/run/event_file.h"
#include "core/run/events.h"
#include "core/run/read_run.h"

namespace assay::run {
namespace {

using Json = nlohmann::ordered_json;
namespace fs = std::filesystem;

constexpr double kMostSeconds = 1e9;

bool usable(const Duration& one) {
  return one.seconds > 0 && one.seconds <= kMostSeconds && one.load_seconds >= 0 && one.load_seconds <= kMostSeconds &&
         one.repeats >= 1;
}

// `json`: what the file holds.
Result<Durations> read_table(const fs::path& file, const Json& json) {
  const Json schema = json.value("schema", Json());
  if (schema != kDurationsSchema) {
    return invalid(fmt::format("{}: schema {}, this version reads {}; use the journal of the run instead",
                               file.string(), schema.dump(), kDurationsSchema));
  }
  Durations durations;
  for (const auto& [name, entry] : json["cases"].items()) {
    const auto number = [&entry = entry](const char* member, double absent) {
      const Json value = entry.is_object() ? entry.value(member, Json(absent)) : Json();
      return value.is_number() ? value.get<double>() : -1;
    };
    const double repeats = number("repeats", 1);
    const Duration one{.seconds = number("seconds", -1),
                       .load_seconds = number("load_seconds", 0),
                       .repeats = repeats >= 1 && repeats <= kMostRepeats ? static_cast<int>(repeats) : 0};
    if (!usable(one)) {
      return invalid(
          fmt::format("{}: case {}: expected seconds above 0, load_seconds of 0 or more, and repeats of 1 or more",
                      file.string(), name));
    }
    durations.cases.emplace(name, one);
  }
  return durations;
}

// A journal has an event on each line; a durations.json is one object that may lie on many.
bool begins_like_journal(const fs::path& file) {
  std::ifstream stream(file, std::ios::binary);
  std::string first;
  std::getline(stream, first);
  return parse_line(first).ok();
}

}  // namespace

Result<Durations> read_durations(const fs::path& path) {
  std::error_code code;
  const bool folder = fs::is_directory(path, code);
  if (folder) {
    if (Status there = check_run_folder(path); !there.ok()) return there;
  }
  const fs::path file = folder ? path / "results.jsonl" : path;
  const fs::file_status found = fs::status(file, code);
  if (!fs::status_known(found)) return infra(fmt::format("{}: cannot be looked at: {}", file.string(), code.message()));
  if (!fs::exists(found)) {
    return not_found(file.string() + ": no such file; expected an output folder, a results.jsonl or a durations.json");
  }
  if (!fs::is_regular_file(found)) return invalid(file.string() + ": is no regular file");
  if (file.filename() == "results.jsonl" || begins_like_journal(file)) {
    const Result<RunRecord> record = read_journal(file, Detail::kVerdicts);
    if (!record) return record.status();
    return durations_of(record->summary.outcomes);
  }
  const Result<std::string> text = read_file(file);
  if (!text) return text.status();
  const Json json = Json::parse(*text, nullptr, false);
  if (json.is_object() && json.contains("cases") && json["cases"].is_object()) return read_table(file, json);
  return invalid(file.string() +
                 ": neither a journal of a run nor a durations.json; name an output folder, its "
                 "results.jsonl, or the durations.json that 'assay merge' writes");
}

Durations durations_of(const std::vector<CaseOutcome>& outcomes) {
  Durations durations;
  for (const CaseOutcome& outcome : outcomes) {
    const Duration one{.seconds = outcome.summary.seconds,
                       .load_seconds = outcome.summary.load_seconds,
                       .repeats = outcome.repeats.empty() ? 1 : static_cast<int>(outcome.repeats.size())};
    const Verdict verdict = outcome.verdict.verdict;
    if (verdict != Verdict::kInfra && usable(one)) durations.cases[outcome.name] = one;
    if (verdict == Verdict::kSkipped && !(one.seconds > 0)) durations.cases[outcome.name] = {.seconds = kNoSeconds};
  }
  return durations;
}

std::string durations_json(const std::vector<CaseOutcome>& outcomes) {
  const Durations durations = durations_of(outcomes);
  Json cases = Json::object();
  for (const CaseOutcome& outcome : outcomes) {  // in the order of the run
    const auto one = durations.cases.find(outcome.name);
    if (one == durations.cases.end()) continue;
    cases[outcome.name] = {
        {"seconds", one->second.seconds}, {"load_seconds", one->second.load_seconds}, {"repeats", one->second.repeats}};
  }
  return Json{{"schema", kDurationsSchema}, {"cases", std::move(cases)}}.dump(-1, ' ', false,
                                                                              Json::error_handler_t::replace) +
         "\n";
}

}  // namespace assay::run
