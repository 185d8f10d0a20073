#include "core/run/merge_checks.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "core/run/run_header.h"

namespace assay::run {
namespace {

using Json = nlohmann::ordered_json;

std::string name_of(const RunRecord& run) { return run.info.output.string(); }

// The platform that each engine ran on, where it is one.
std::map<std::string, std::set<std::string>> platforms(const RunRecord& run) {
  std::map<std::string, std::set<std::string>> found;
  for (const CaseOutcome& outcome : run.summary.outcomes) {
    if (!outcome.summary.platform.empty()) found[outcome.summary.engine].insert(outcome.summary.platform);
  }
  return found;
}

// Workloads of a recipe name their platforms themselves; the digest of the cases has them.
bool cases_choose_platforms(const RunRecord& run) {
  const std::vector<std::string>& command = run.run_command.empty() ? run.command : run.run_command;
  return command.size() > 1 && command[1] == "recipe";
}

void compare_platforms(const RunRecord& first, const RunRecord& other, std::vector<std::string>* lines) {
  if (cases_choose_platforms(first) && cases_choose_platforms(other)) return;
  const auto before = platforms(first);
  for (const auto& [engine, names] : platforms(other)) {
    const auto found = before.find(engine);
    if (found == before.end() || names.size() != 1 || found->second.size() != 1 || found->second == names) continue;
    lines->push_back(fmt::format("platform under engine {}: {} in {}, {} in {}", engine, *found->second.begin(),
                                 name_of(first), *names.begin(), name_of(other)));
  }
}

void compare(const RunRecord& first, const RunRecord& other, std::vector<std::string>* lines) {
  const auto one = [&](const char* thing, const std::string& a, const std::string& b) {
    if (a != b) lines->push_back(fmt::format("{}: {} in {}, {} in {}", thing, a, name_of(first), b, name_of(other)));
  };
  const auto text = [](const Json& value) { return value.dump(-1, ' ', false, Json::error_handler_t::replace); };
  one("version of assay", text(first.version), text(other.version));
  one("environment", text(first.environment), text(other.environment));
  one("platform", text(first.platform), text(other.platform));
  const Json before = Json::parse(first.options.empty() ? "{}" : first.options);
  const Json after = Json::parse(other.options.empty() ? "{}" : other.options);
  std::set<std::string> names;
  for (const Json& options : {before, after}) {
    for (const auto& [name, value] : options.items()) names.insert(name);
  }
  for (const std::string& name : names) {
    if (name != "jobs") one(name.c_str(), text(before.value(name, Json())), text(after.value(name, Json())));
  }
  compare_platforms(first, other, lines);
}

}  // namespace

Status check_same_request(const std::vector<RunRecord>& runs) {
  constexpr size_t kMostLines = 8;
  std::vector<std::string> lines;
  for (size_t i = 1; i < runs.size() && lines.size() < kMostLines; ++i) compare(runs[0], runs[i], &lines);
  if (lines.empty()) return {};
  std::string text = "runs that ask different things are no one run: ";
  for (size_t i = 0; i < lines.size(); ++i) text += (i > 0 ? "; " : "") + lines[i];
  return invalid(text + "; run them alike, or merge them with --allow-different");
}

Status check_shards(const std::vector<RunRecord>& runs, bool allow_twice) {
  const RunRecord* first = nullptr;
  std::map<uint32_t, const RunRecord*> seen;
  for (const RunRecord& run : runs) {
    const ShardInfo& shard = run.info.shard;
    if (shard.index == 0) continue;
    if (first == nullptr) first = &run;
    const ShardInfo& other = first->info.shard;
    if (shard.count != other.count) {
      return invalid(
          fmt::format("{} is shard {} of {}, {} is shard {} of {}: shards of different divisions; merge those "
                      "of one",
                      name_of(*first), other.index, other.count, name_of(run), shard.index, shard.count));
    }
    if (shard.case_list != other.case_list) {
      return invalid(
          fmt::format("{} and {} were run on different cases ({} and {}, digests {:.12} and {:.12}): configs, "
                      "golden files, names or the filter differ; run all shards on one checkout",
                      name_of(*first), name_of(run), other.cases, shard.cases, other.case_list, shard.case_list));
    }
    if (shard.partition != other.partition) {
      return invalid(
          fmt::format("{} and {} divide the same cases differently (digests {:.12} and {:.12}): give all "
                      "shards the same --durations and options",
                      name_of(*first), name_of(run), other.partition, shard.partition));
    }
    const auto [place, is_new] = seen.emplace(shard.index, &run);
    if (!is_new && !allow_twice) {
      return invalid(
          fmt::format("shard {} of {} is there twice: {} and {}; leave one out, or take the worse verdicts "
                      "with --allow-duplicates",
                      shard.index, shard.count, name_of(*place->second), name_of(run)));
    }
  }
  return {};
}

std::vector<uint32_t> missing_shards(const std::vector<RunRecord>& runs) {
  std::set<uint32_t> seen;
  uint32_t count = 0;
  for (const RunRecord& run : runs) {
    if (run.info.shard.index == 0) continue;
    seen.insert(run.info.shard.index);
    count = run.info.shard.count;
  }
  std::vector<uint32_t> missing;
  for (uint32_t index = 1; index <= count; ++index) {
    if (seen.count(index) == 0) missing.push_back(index);
  }
  return missing;
}

std::vector<std::string> common_command(const std::vector<std::string>& command) {
  static const std::set<std::string> kOwn = {"--shard", "--output",  "--durations",     "--junit",
                                             "--tap",   "--history", "--github-summary"};
  std::vector<std::string> common;
  for (size_t i = 0; i < command.size(); ++i) {
    const size_t equals = command[i].find('=');
    if (kOwn.count(command[i].substr(0, equals)) == 0) {
      common.push_back(command[i]);
    } else if (equals == std::string::npos) {
      ++i;  // its value
    }
  }
  return common;
}

}  // namespace assay::run
