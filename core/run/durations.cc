#include "core/run/durations.h"

#include <fmt/format.h>

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <system_error>

#include "core/run/event_file.h"
#include "core/run/events.h"

namespace assay::run {
namespace {

using Json = nlohmann::ordered_json;
namespace fs = std::filesystem;

constexpr double kMostSeconds = 1e9;

bool usable(const Duration& one) {
  return one.seconds > 0 && one.seconds <= kMostSeconds && one.load_seconds >= 0 && one.load_seconds <= kMostSeconds &&
         one.repeats >= 1;
}

// Takes the end of a case out of a line of a journal; other lines are passed over.
Status take_event(const std::string& line, Durations* durations) {
  const auto callback = [](int /*depth*/, Json::parse_event_t kind, Json& value) {
    return kind != Json::parse_event_t::key || (value != "evidence" && value != "metrics" && value != "provenance");
  };
  const Json json = Json::parse(line, callback, false);
  if (!json.is_object() || !json.contains("event")) return invalid("not an event");
  try {
    if (json["event"] != event::kCaseFinished) return {};
    if (json.value("verdict", Json::object()).value("verdict", "") == to_string(Verdict::kInfra)) return {};
    const Result<CaseSummary> summary = parse_case_summary(json.value("summary", Json::object()));
    if (!summary) return summary.status();
    const size_t repeats = json.value("repeats", Json::array()).size();
    const Duration one{.seconds = summary->seconds,
                       .load_seconds = summary->load_seconds,
                       .repeats = repeats == 0 ? 1 : static_cast<int>(repeats)};
    if (usable(one)) durations->cases[json.value("name", "")] = one;
  } catch (const std::exception& failure) {  // a member of another type
    return invalid(failure.what());
  }
  return {};
}

Result<Durations> read_journal(const fs::path& file) {
  std::ifstream stream(file, std::ios::binary);
  if (!stream) return infra(file.string() + ": cannot be read; check the permissions");
  const std::string ending = fmt::format("\"event\":\"{}\"", event::kCaseFinished);
  Durations durations;
  std::string line;
  for (size_t number = 1; std::getline(stream, line) && !stream.eof(); ++number) {
    if (line.find(ending) == std::string::npos) continue;
    if (Status taken = take_event(line, &durations); !taken.ok()) {
      return taken.with(fmt::format("{}:{}", file.string(), number));
    }
  }
  return durations;
}

Result<Durations> read_table(const fs::path& file) {
  const Result<std::string> text = read_file(file);
  if (!text) return text.status();
  try {
    const Json json = Json::parse(*text);
    if (const int schema = json.at("schema").get<int>(); schema != kDurationsSchema) {
      return invalid(fmt::format("{}: schema {}, this version reads {}; use the journal of the run instead",
                                 file.string(), schema, kDurationsSchema));
    }
    Durations durations;
    for (const auto& [name, entry] : json.at("cases").items()) {
      const Duration one{.seconds = entry.at("seconds").get<double>(),
                         .load_seconds = entry.value("load_seconds", 0.0),
                         .repeats = entry.value("repeats", 1)};
      if (!usable(one)) {
        return invalid(
            fmt::format("{}: case {}: expected seconds above 0, load_seconds of 0 or more, and repeats of 1 "
                        "or more",
                        file.string(), name));
      }
      durations.cases.emplace(name, one);
    }
    return durations;
  } catch (const Json::exception& failure) {
    return invalid(fmt::format("{}: neither a journal nor a durations.json: {}", file.string(), failure.what()));
  }
}

}  // namespace

Result<Durations> read_durations(const fs::path& path) {
  std::error_code code;
  const fs::path file = fs::is_directory(path, code) ? path / "results.jsonl" : path;
  if (!fs::exists(file, code)) {
    return not_found(file.string() + ": no such file; expected an output folder, a results.jsonl or a durations.json");
  }
  if (!fs::is_regular_file(file, code)) return invalid(file.string() + ": is no regular file");
  std::ifstream stream(file, std::ios::binary);
  std::string first;
  std::getline(stream, first);
  const Result<Json> event = parse_line(first);
  return event ? read_journal(file) : read_table(file);
}

std::string durations_json(const std::vector<CaseOutcome>& outcomes) {
  Json cases = Json::object();
  for (const CaseOutcome& outcome : outcomes) {
    const Duration one{.seconds = outcome.summary.seconds,
                       .load_seconds = outcome.summary.load_seconds,
                       .repeats = outcome.repeats.empty() ? 1 : static_cast<int>(outcome.repeats.size())};
    if (outcome.verdict.verdict == Verdict::kInfra || !usable(one)) continue;
    cases[outcome.name] = {{"seconds", one.seconds}, {"load_seconds", one.load_seconds}, {"repeats", one.repeats}};
  }
  return Json{{"schema", kDurationsSchema}, {"cases", std::move(cases)}}.dump(-1, ' ', false,
                                                                              Json::error_handler_t::replace) +
         "\n";
}

}  // namespace assay::run
