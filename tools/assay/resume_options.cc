#include "tools/assay/resume_options.h"

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <system_error>

#include "core/command/redact.h"
#include "core/golden/json_reason.h"
#include "core/golden/whole_number.h"
#include "core/run/events.h"
#include "core/run/read_run.h"

namespace assay::cli {

namespace po = boost::program_options;
namespace fs = std::filesystem;

namespace {

constexpr const char* kPathOptions[] = {"junit",    "tap",    "github-summary", "history",
                                        "recorded", "output", "profile",        "root"};

std::string absolute_of(const std::string& path) {
  std::error_code code;
  const fs::path made = fs::absolute(path, code).lexically_normal();
  return made.has_filename() ? made.string() : made.parent_path().string();
}

Words absolute_of(Words paths) {
  for (std::string& path : paths) path = absolute_of(path);
  std::sort(paths.begin(), paths.end());
  return paths;
}

bool given(const po::variables_map& values, const char* name) {
  return values.count(name) != 0 && !values[name].defaulted();
}

void put(po::variables_map& values, const std::string& name, const po::variable_value& value) {
  values.erase(name);
  values.insert({name, value});
}

// How the run was started.
struct Start {
  Words command;
  std::string directory;
};

// "run", "recipe run": what comes before the options and paths of a recorded command.
std::string command_of(const Words& words) {
  if (words.size() < 2) return "?";
  return words[1] + (words[1] == "recipe" && words.size() > 2 ? " " + words[2] : "");
}

std::string remedy_for(const Words& words) {
  const std::string made = command_of(words);
  if (made == "run" || made == "recipe run") return "go on with it by 'assay " + made + " --resume'";
  return "only runs of 'assay run' and 'assay recipe run' can be resumed";
}

Result<Start> read_start(const fs::path& folder, const Words& wanted) {
  const fs::path file = folder / "results.jsonl";
  std::error_code code;
  if (Status there = run::check_run_folder(folder); !there.ok()) return there.with("--resume");
  std::ifstream stream(file, std::ios::binary);
  if (!stream || fs::is_directory(file, code)) {
    return infra("--resume " + folder.string() + ": its results.jsonl cannot be read; check the permissions");
  }
  std::string line;
  if (!std::getline(stream, line) || stream.eof()) {  // a torn line is no line
    return invalid("--resume " + folder.string() + ": its results.jsonl " +
                   (line.empty() ? "is empty" : "is cut off in its first line") +
                   ": the run ended before it had written down how it was started; start it anew");
  }
  const Result<nlohmann::ordered_json> event = run::parse_line(line);
  if (!event || (*event)["event"] != run::event::kRunStarted) {
    return invalid(file.string() + ":1: no run_started line; expected the journal of a run");
  }
  try {
    const int schema = json::whole(*event, "schema", 0);
    if (schema != run::kEventSchema) {
      return invalid(file.string() + ":1: schema " + std::to_string(schema) + ", this version reads " +
                     std::to_string(run::kEventSchema) + "; use the assay that wrote it");
    }
    Start start{event->value("run_command", event->value("command", Words())), event->value("directory", "")};
    const Words& words = start.command;
    const auto end = std::min(words.size(), wanted.size() + 1);
    if (end < 2 ||
        !std::equal(words.begin() + 1, words.begin() + static_cast<ptrdiff_t>(end), wanted.begin(), wanted.end())) {
      return invalid("--resume " + folder.string() + ": made by 'assay " + command_of(words) + "', " +
                     remedy_for(words));
    }
    start.command.erase(start.command.begin(), start.command.begin() + static_cast<ptrdiff_t>(end));
    return start;
  } catch (const nlohmann::json::exception& failure) {
    return invalid(file.string() + ":1: run_started: " + json::reason_of(failure.what()));
  }
}

Status check_paths(const po::variables_map& values, const po::variables_map& recorded, const fs::path& directory) {
  if (!given(values, "path")) return {};
  Words before;
  for (const std::string& path : all(recorded, "path")) before.push_back((directory / path).string());
  if (before.empty()) before = {directory.string()};
  if (absolute_of(before) == absolute_of(all(values, "path"))) return {};
  std::string text;
  for (const std::string& path : before) text += " " + path;
  return invalid("--resume: other paths are given than those of the run, which are" + text + "; leave them out");
}

// Variables given now stand over recorded ones of the same name.
Words merged_settings(Words recorded, const Words& now) {
  const auto name = [](const std::string& word) { return word.substr(0, word.find('=')); };
  for (const std::string& word : now) {
    std::erase_if(recorded, [&](const std::string& before) { return name(before) == name(word); });
    recorded.push_back(word);
  }
  return recorded;
}

// The journal has *** for secrets: whoever goes on with the run has to know them.
Status check_secrets(const po::variables_map& recorded) {
  const auto lost = [](const std::string& word) { return word.find(command::kRedacted) != std::string::npos; };
  for (const auto& [name, value] : recorded) {
    Words words;
    if (const auto* text = boost::any_cast<std::string>(&value.value())) words = {*text};
    if (const auto* list = boost::any_cast<Words>(&value.value())) words = *list;
    for (const std::string& word : words) {
      if (!lost(word)) continue;
      return invalid("--resume: the journal does not keep secrets, --" + name + " " + word +
                     " was one; give it again with its value");
    }
  }
  return {};
}

}  // namespace

Result<po::variables_map> resume_values(const po::options_description& description, po::variables_map values,
                                        const Words& command) {
  const std::string folder = absolute_of(values["resume"].as<std::string>());
  const Result<Start> start = read_start(folder, command);
  if (!start) return start.status();
  po::variables_map recorded;
  try {
    po::positional_options_description places;
    places.add("path", -1);
    po::command_line_parser parser(start->command);
    parser.options(description)
        .positional(places)
        .style(po::command_line_style::unix_style & ~po::command_line_style::allow_guessing);
    po::store(parser.run(), recorded);
  } catch (const po::error& error) {
    return invalid("--resume " + folder + ": its recorded command cannot be read: " + error.what() +
                   "; use the assay that wrote it");
  }
  std::error_code code;
  const fs::path directory = start->directory.empty() ? fs::current_path(code) : fs::path(start->directory);
  if (Status same = check_paths(values, recorded, directory); !same.ok()) return same;
  if (given(values, "output") && absolute_of(values["output"].as<std::string>()) != folder) {
    return invalid("--output: a resumed run goes on in its own folder " + folder + "; leave --output out");
  }
  if (given(values, "durations"))
    return invalid("--durations: cannot be given with --resume; the shard stays as it is");
  if (given(values, "shard")) {
    const std::string before = given(recorded, "shard") ? recorded["shard"].as<std::string>() : "none";
    if (before != values["shard"].as<std::string>()) {
      return invalid("--shard: recorded " + before + ", now " + values["shard"].as<std::string>() +
                     "; leave it out, a resumed shard stays as it is");
    }
  }
  for (const char* name : kPathOptions) {
    if (!given(values, name) || values[name].as<std::string>().empty()) continue;
    put(values, name, po::variable_value(boost::any(absolute_of(values[name].as<std::string>())), false));
  }
  if (given(values, "plugin-path")) {
    Words paths = all(values, "plugin-path");
    for (std::string& path : paths) path = absolute_of(path);
    put(values, "plugin-path", po::variable_value(boost::any(paths), false));
  }
  if (given(values, "set")) {
    const Words settings = merged_settings(all(recorded, "set"), all(values, "set"));
    put(values, "set", po::variable_value(boost::any(settings), false));
  }
  for (const auto& [name, value] : values) {
    if (!value.defaulted() && name != "path") put(recorded, name, value);
  }
  if (Status known = check_secrets(recorded); !known.ok()) return known;
  fs::current_path(directory, code);
  if (code) {
    return invalid("--resume " + folder + ": the folder in which it was started, " + directory.string() +
                   ", cannot be entered: " + code.message());
  }
  put(recorded, "output", po::variable_value(boost::any(folder), false));
  return recorded;
}

Result<std::vector<Verdict>> parse_rerun(const std::string& text, bool strict) {
  std::vector<Verdict> verdicts;
  std::stringstream words(text);
  for (std::string word; std::getline(words, word, ',');) {
    std::transform(word.begin(), word.end(), word.begin(), [](unsigned char c) { return std::toupper(c); });
    if (word == "FAILED") {
      for (int i = 0; i <= static_cast<int>(Verdict::kCrashed); ++i) {
        const auto verdict = static_cast<Verdict>(i);
        if (verdict != Verdict::kSkipped && !passes(verdict, strict)) verdicts.push_back(verdict);
      }
      continue;
    }
    const std::optional<Verdict> verdict = parse_verdict(word);
    if (!verdict) return invalid("--rerun '" + word + "': expected verdicts like DIVERGED,FLAKY, or failed");
    verdicts.push_back(*verdict);
  }
  if (verdicts.empty()) return invalid("--rerun: expected verdicts like DIVERGED,FLAKY, or failed");
  return verdicts;
}

}  // namespace assay::cli
