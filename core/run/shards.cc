#include "core/run/shards.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>

#include "core/discover/list.h"
#include "core/golden/digest.h"
#include "core/golden/json_reason.h"
#include "core/golden/whole_number.h"
#include "core/run/case_digest.h"
#include "core/run/event_file.h"
#include "core/run/relation_rows.h"

namespace assay::run {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kMostListed = 16;  // shards whose times are listed one by one

// SHA-256 of who is in which shard.
std::string partition_digest(const RunOptions& options, const ShardWork& work, const Partition& made) {
  std::string text;
  for (size_t i = 0; i < work.units.size(); ++i) {
    text += options.cases[work.units[i].at].name;
    for (const std::string& relation : work.units[i].relations) text += "@" + relation;
    text += fmt::format("\n{}\n", made.share_of[i] + 1);
  }
  const Result<std::string> digest = digest_of_text(text);
  return digest ? *digest : "";
}

std::string shard_file(const RunOptions& options, const ShardWork& work, const Partition& made,
                       const std::string& partition) {
  std::string text = fmt::format("{{\"schema\":{},\"partition\":\"{}\",\"count\":{},\"cases\":[", kShardsSchema,
                                 partition, options.shard->count);
  for (size_t i = 0; i < work.units.size(); ++i) {
    const TestCase& test = options.cases[work.units[i].at];
    const Json entry = {{"name", test.name},
                        {"path", test.dir},
                        {"model", test.model},
                        {"relations", work.units[i].relations},
                        {"shard", made.share_of[i] + 1}};
    text += (i == 0 ? "\n" : ",\n") + entry.dump(-1, ' ', false, Json::error_handler_t::replace);
  }
  return text + "]}\n";
}

double to_seconds(int64_t microseconds) { return static_cast<double>(microseconds) / 1e6; }

}  // namespace

Result<ShardOptions> parse_shard(std::string_view text) {
  const auto read = [](std::string_view word, uint32_t* value) {
    const auto [stop, error] = std::from_chars(word.data(), word.data() + word.size(), *value);
    return error == std::errc() && stop == word.data() + word.size();
  };
  const size_t slash = text.find('/');
  uint32_t index = 0;
  uint32_t count = 0;
  if (slash == std::string_view::npos || !read(text.substr(0, slash), &index) ||
      !read(text.substr(slash + 1), &count)) {
    return invalid(fmt::format("--shard '{}': expected i/n, for example 1/8 for the first of eight shards", text));
  }
  if (count < 1 || count > kMostShards) {
    return invalid(fmt::format("--shard {}: {} shards; expected 1 to {}", text, count, kMostShards));
  }
  if (index < 1 || index > count) {
    return invalid(fmt::format("--shard {}: there is no shard {} of {}; shards are numbered from 1 to {}", text, index,
                               count, count));
  }
  return ShardOptions{.index = index, .count = count, .durations = {}};
}

std::string engine_name(const TestCase& test, const RunOptions& options, const CaseSettings& own) {
  if (!options.engine.empty()) return options.engine;
  return own.engine.empty() ? discover::engine_of(test) : own.engine;
}

std::vector<std::string> selected_relations(const TestCase& test, const RunOptions& options, const CaseSettings& own,
                                            const Filter& filter, size_t* dropped) {
  std::vector<std::string> relations = relations_wanted(test, options.metamorphic);
  if (relations.empty()) relations = {""};
  FilterSubject subject{.name = "",
                        .model = test.model,
                        .engine = engine_name(test, options, own),
                        .metrics = test.metrics.value_or(std::vector<std::string>()),
                        .tags = test.assay.tags,
                        .relation = "",
                        .mode = test.mode};
  *dropped = std::erase_if(relations, [&](const std::string& one) {
    subject.name = row_name(test.name, one);
    subject.relation = one;
    return !filter.matches(subject);
  });
  return relations;
}

ShardPlan plan_shards(const RunOptions& options, const Filter& filter) {
  const ShardWork work = shard_work(options, filter, options.shard->durations);
  const Partition made = partition(work.work, options.shard->count);
  ShardPlan plan;
  plan.mine.assign(options.cases.size(), false);
  ShardInfo& info = plan.info;
  info.index = options.shard->index;
  info.count = options.shard->count;
  info.loads = made.loads[info.index - 1];
  std::vector<const TestCase*> cases;
  std::vector<CaseSettings> settings;
  for (size_t i = 0; i < work.units.size(); ++i) {
    const size_t at = work.units[i].at;
    cases.push_back(&options.cases[at]);
    if (!options.settings.empty()) settings.push_back(options.settings[at]);
    info.rows += work.units[i].relations.size();
    if (!work.units[i].measured) ++info.estimated;
    plan.mine[at] = made.share_of[i] + 1 == info.index;
    info.cases_here += plan.mine[at] ? 1 : 0;
  }
  info.cases = work.units.size();
  if (work.seconds) {
    for (const int64_t time : made.time) info.predicted.push_back(to_seconds(time));
  }
  info.case_list = case_list_digest(cases, settings);
  info.partition = partition_digest(options, work, made);
  plan.file = shard_file(options, work, made, info.partition);
  return plan;
}

Result<ShardFile> read_shard_file(const std::filesystem::path& file) {
  const Result<std::string> text = read_file(file);
  if (!text) return text.status();
  try {
    const Json json = Json::parse(*text);
    if (const int schema = json::whole<int>(json.at("schema")); schema != kShardsSchema) {
      return invalid(fmt::format("{}: schema {}, this version reads {}; use the assay that wrote it", file.string(),
                                 schema, kShardsSchema));
    }
    ShardFile read{.partition = json.at("partition"), .count = json::whole<uint32_t>(json.at("count")), .cases = {}};
    for (const Json& entry : json.at("cases")) {
      ShardedCase one{.name = entry.at("name"),
                      .path = entry.at("path"),
                      .model = entry.at("model"),
                      .relations = entry.at("relations"),
                      .shard = json::whole<uint32_t>(entry.at("shard"))};
      if (one.shard < 1 || one.shard > read.count) {
        return invalid(fmt::format("{}: case {} lies in shard {}, expected 1 to {}", file.string(), one.name, one.shard,
                                   read.count));
      }
      read.cases.push_back(std::move(one));
    }
    return read;
  } catch (const Json::exception& failure) {
    return invalid(fmt::format("{}: {}; expected what a shard writes", file.string(), json::reason_of(failure.what())));
  }
}

std::string describe(const ShardInfo& info) {
  std::string text = fmt::format("shard {} of {}: {} of {} cases, {} load{}", info.index, info.count, info.cases_here,
                                 info.cases, info.loads, info.loads == 1 ? "" : "s");
  if (info.predicted.empty()) {
    return text + "; balanced by estimates alone: give durations of an earlier run with --durations to predict seconds";
  }
  text += fmt::format(", predicted {:.1f} s; ", info.predicted[info.index - 1]);
  if (info.estimated > 0) text += fmt::format("{} of {} durations estimated; ", info.estimated, info.cases);
  if (info.count <= kMostListed) {
    text += "all shards:";
    for (const double seconds : info.predicted) text += fmt::format(" {:.1f}", seconds);
    return text + " s";
  }
  std::vector<double> sorted = info.predicted;
  std::sort(sorted.begin(), sorted.end());
  return text + fmt::format("shortest shard {:.1f} s, median {:.1f} s, longest {:.1f} s", sorted.front(),
                            sorted[sorted.size() / 2], sorted.back());
}

}  // namespace assay::run
