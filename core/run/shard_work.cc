// The time of each case: recorded, or estimated from what its config says and scaled to those that are recorded.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>
#include <unordered_map>

#include "core/discover/argument_table.h"
#include "core/discover/list.h"
#include "core/run/durations.h"
#include "core/run/relation_rows.h"
#include "core/run/shards.h"

namespace assay::run {
namespace {

constexpr double kPromptFile = 16;   // prompts that a file counts for: it may lie on a machine that is not this one
constexpr double kLoadTokens = 10;   // a load without a recorded time takes as long as so many tokens
constexpr double kEstimates = 1e12;  // sum of all times where no duration is recorded
constexpr double kLongest = 1e15;    // microseconds
constexpr const char* kReplay = "replay";  // computes nothing: its cases are all alike

// A number among the arguments as they are written; 0: absent, or not a plain one.
double number(const TestCase& test, std::string_view key) {
  double value = 0;
  for (const ModelArg& argument : test.model_args.entries) {
    if (argument.key != key) continue;
    const std::string& text = argument.text;
    if (std::from_chars(text.data(), text.data() + text.size(), value).ec != std::errc() || !(value > 0)) value = 0;
  }
  return value;
}

double prompts(const TestCase& test) {
  double count = 0;
  for (const ModelArg& argument : test.model_args.entries) {
    if (argument.key == "--prompts") count = argument.is_list ? static_cast<double>(argument.items.size()) : 1;
    if (argument.key == "--prompt-file" && count == 0) count = kPromptFile;
  }
  const double most = number(test, "--prompt-file-num-truncate");
  return std::max(1.0, most > 0 ? std::min(count, most) : count);
}

// Work of one token: the elements of the weights, roughly.
double token_work(const TestCase& test) {
  const double width = number(test, "--hidden-size");
  const double inner =
      number(test, "--ffn-hidden-size") + number(test, "--num-experts") * number(test, "--moe-ffn-hidden-size");
  return std::max(
      1.0, number(test, "--num-layers") * width * (4 * width + 3 * inner) + 2 * width * number(test, "--vocab-size"));
}

int repeats(const TestCase& test, const RunOptions& options, const CaseSettings& own) {
  if (options.repeat > 0) return options.repeat;
  for (const EnvVar& variable : test.env_vars) {
    int value = 0;
    const std::string& text = variable.value;
    if (variable.name != "N_REPEAT") continue;
    if (std::from_chars(text.data(), text.data() + text.size(), value).ec == std::errc() && value > 0) return value;
  }
  return std::max(own.repeat, 1);
}

// Of one row, all repeats.
double row_work(const TestCase& test, const RunOptions& options, const CaseSettings& own, const std::string& relation) {
  if (engine_name(test, options, own) == kReplay) return 1;
  const double tokens = relation.empty() ? prompts(test) * (1 + number(test, "--num-tokens-to-generate"))
                                         : relation_tokens(relation, parameters_of(test));
  return token_work(test) * tokens * repeats(test, options, own);
}

double median(std::vector<double> values) {
  if (values.empty()) return 0;
  const auto middle = values.begin() + static_cast<ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

int64_t ticks(double value) { return static_cast<int64_t>(std::clamp(std::round(value), 0.0, kLongest)); }

// Seconds of a unit of work, by engine, and over all.
class Scale {
 public:
  void add(const std::string& engine, double seconds, double work) {
    by_engine_[engine].push_back(seconds / work);
    all_.push_back(seconds / work);
  }
  bool known() const { return !all_.empty(); }
  void settle() {
    for (const auto& [engine, ratios] : by_engine_) medians_[engine] = median(ratios);
    median_ = median(all_);
  }
  double of(const std::string& engine) const {
    const auto found = medians_.find(engine);
    return found == medians_.end() ? median_ : found->second;
  }

 private:
  std::map<std::string, std::vector<double>> by_engine_;
  std::vector<double> all_;
  std::map<std::string, double> medians_;
  double median_ = 1;
};

struct Row {
  double work = 0;
  double seconds = -1;  // recorded; -1: not
};

}  // namespace

std::string load_key(const TestCase& test, const RunOptions& options, const CaseSettings& own) {
  std::string key = engine_name(test, options, own) + "\n";
  key += (!options.backend.empty() ? options.backend : test.assay.backend.value_or("auto")) + "\n";
  std::map<std::string, std::string> parts;
  for (const EnvVar& variable : test.env_vars) parts["$" + variable.name] = variable.value;
  for (const ModelArg& argument : test.model_args.entries) {
    const discover::ArgumentInfo* info = discover::find_argument(argument.key);
    const bool of_requests = info != nullptr && (info->cls != discover::ArgumentClass::kUsed ||
                                                 info->reason == "sampling" || info->reason == "requests and results");
    if (of_requests) continue;
    std::string& value = parts[argument.key] = argument.text;
    for (const std::string& item : argument.items) value += "\t" + item;
  }
  for (const auto& [name, value] : parts) key.append(name).append("=").append(value).append("\n");
  return key;
}

ShardWork shard_work(const RunOptions& options, const Filter& filter, const Durations& durations) {
  ShardWork made;
  std::vector<std::vector<Row>> rows;
  std::unordered_map<std::string, uint32_t> groups;
  std::vector<std::vector<double>> loads;  // (groups) recorded, seconds
  std::vector<bool> idle;                  // (groups) every case was skipped: nothing is loaded
  std::vector<double> load_work;           // (groups)
  std::vector<std::string> engines;        // (groups)
  Scale scale;
  for (size_t at = 0; at < options.cases.size(); ++at) {
    const TestCase& test = options.cases[at];
    const CaseSettings own = options.settings.empty() ? CaseSettings() : options.settings[at];
    size_t dropped = 0;
    ShardWork::Unit unit{
        .at = at, .relations = selected_relations(test, options, own, filter, &dropped), .measured = true};
    if (unit.relations.empty()) continue;
    const auto [group, is_new] = groups.try_emplace(load_key(test, options, own), static_cast<uint32_t>(groups.size()));
    const std::string engine = engine_name(test, options, own);
    if (is_new) {
      loads.emplace_back();
      idle.push_back(true);
      load_work.push_back(engine == kReplay ? 0 : kLoadTokens * token_work(test));
      engines.push_back(engine);
    }
    std::vector<Row> of_case;
    for (const std::string& relation : unit.relations) {
      Row row{.work = row_work(test, options, own, relation), .seconds = -1};
      const auto known = durations.cases.find(row_name(test.name, relation));
      if (known != durations.cases.end()) {
        const Duration& duration = known->second;
        row.seconds = duration.seconds / duration.repeats * repeats(test, options, own);
        if (duration.seconds > kNoSeconds) {
          scale.add(engine, row.seconds, row.work);
          loads[group->second].push_back(duration.load_seconds);
        }
      }
      if (!(row.seconds >= 0 && known->second.seconds <= kNoSeconds)) idle[group->second] = false;
      unit.measured = unit.measured && row.seconds >= 0;
      of_case.push_back(row);
    }
    made.work.pieces.push_back({.group = group->second, .time = 0});
    rows.push_back(std::move(of_case));
    made.units.push_back(std::move(unit));
  }
  made.seconds = scale.known();
  scale.settle();
  double tick = 1e6;
  if (!made.seconds) {
    double all = 0;
    for (const double work : load_work) all += work;
    for (const auto& of_case : rows) {
      for (const Row& row : of_case) all += row.work;
    }
    tick = kEstimates / std::max(all, 1.0);
  }
  for (size_t i = 0; i < rows.size(); ++i) {
    double time = 0;
    for (const Row& row : rows[i]) {
      time += row.seconds >= 0 ? row.seconds : row.work * scale.of(engines[made.work.pieces[i].group]);
    }
    made.work.pieces[i].time = std::max<int64_t>(1, ticks(time * tick));
  }
  for (size_t g = 0; g < loads.size(); ++g) {
    const double load = idle[g] ? 0 : loads[g].empty() ? load_work[g] * scale.of(engines[g]) : median(loads[g]);
    made.work.loads.push_back(ticks(load * tick));
  }
  return made;
}

}  // namespace assay::run
