#include "core/run/launch_options.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <nlohmann/json.hpp>
#include <string_view>

#include "core/discover/nearest.h"

namespace assay::run {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view kWhat = "launcher options: workers";
constexpr double kLongest = 1e8;  // seconds
constexpr int kMostTasks = 100'000;

// One member: what it may be, and its value, which is the default until one was read.
struct Member {
  std::string_view name;
  double least;
  double most;
  bool whole;
  double value;
};

Result<double> number(const Member& member, const Json& json) {
  const double seen = json.is_number() ? json.get<double>() : std::nan("");
  if (seen >= member.least && seen <= member.most && (!member.whole || std::floor(seen) == seen)) return seen;
  return invalid(fmt::format("{}.{} is {}, expected {} from {} to {}", kWhat, member.name,
                             json.dump(-1, ' ', true, Json::error_handler_t::replace).substr(0, 60),
                             member.whole ? "a whole number" : "a number", member.least, member.most));
}

}  // namespace

Result<LaunchOptions> parse_launch_options(const std::string& text) {
  Json json = Json::parse(text.empty() ? "{}" : text, nullptr, false);
  if (!json.is_object()) return invalid("launcher options: not a JSON object");
  LaunchOptions made;
  enum {
    kTasks,
    kCases,
    kDevices,
    kCpus,
    kMemory,
    kSeconds,
    kHeartbeat,
    kAppear,
    kPatience,
    kLosses,
    kPoll,
    kPollMost
  };
  std::array members = {Member{"tasks", 1, kMostTasks, true, 0},
                        Member{"cases_per_task", 1, 1e9, true, 0},
                        Member{"devices", 0, 1024, true, -1},
                        Member{"cpus", 1, 65536, true, 0},
                        Member{"memory", 1e6, 1e15, true, 0},
                        Member{"seconds", 1, kLongest, false, 0},
                        Member{"heartbeat", 1, kLongest, false, made.heartbeat},
                        Member{"appear", 1, kLongest, false, made.appear},
                        Member{"patience", 1, kLongest, false, made.patience},
                        Member{"losses", 0, 1000, true, static_cast<double>(made.losses)},
                        Member{"poll", 0.05, 3600, false, made.poll},
                        Member{"poll_most", 0.05, 3600, false, made.poll_most}};
  if (const auto workers = json.find("workers"); workers != json.end()) {
    if (!workers->is_object()) return invalid(fmt::format("{} is no object", kWhat));
    for (const auto& [name, value] : workers->items()) {
      const auto found =
          std::find_if(members.begin(), members.end(), [&key = name](const Member& m) { return m.name == key; });
      if (found == members.end()) {
        std::vector<std::string_view> known;
        for (const Member& member : members) known.push_back(member.name);
        return invalid(fmt::format("{}: unknown member {}{}; known: {}", kWhat, name,
                                   discover::did_you_mean(name, known), fmt::join(known, ", ")));
      }
      Result<double> read = number(*found, value);
      if (!read) return read.status();
      found->value = *read;
    }
    json.erase("workers");
  }
  made.tasks = static_cast<int>(members[kTasks].value);
  made.cases_per_task = static_cast<int>(members[kCases].value);
  made.devices = static_cast<int>(members[kDevices].value);
  made.cpus = static_cast<int>(members[kCpus].value);
  made.memory = static_cast<uint64_t>(members[kMemory].value);
  made.seconds = members[kSeconds].value;
  made.heartbeat = members[kHeartbeat].value;
  made.appear = members[kAppear].value;
  made.patience = members[kPatience].value;
  made.losses = static_cast<int>(members[kLosses].value);
  made.poll = members[kPoll].value;
  made.poll_most = std::max(members[kPollMost].value, made.poll);
  made.plugin = json.dump();
  return made;
}

std::vector<std::vector<size_t>> split_by_cost(const Plan& plan, const std::vector<size_t>& cases, size_t tasks,
                                               size_t cases_per_task) {
  const size_t room = cases_per_task == 0 ? cases.size() : cases_per_task;
  const size_t count = std::clamp<size_t>(std::max(tasks, (cases.size() + room - 1) / room), 1, cases.size());
  std::vector<size_t> places(cases.size());
  for (size_t i = 0; i < places.size(); ++i) places[i] = i;
  std::stable_sort(places.begin(), places.end(),
                   [&](size_t a, size_t b) { return plan.cases[cases[a]].cost > plan.cases[cases[b]].cost; });
  std::vector<std::vector<size_t>> made(count);  // places first
  std::vector<double> costs(count, 0);
  for (const size_t place : places) {
    size_t best = count;
    for (size_t task = 0; task < count; ++task) {
      if (made[task].size() >= room) continue;
      if (best == count || costs[task] < costs[best] ||
          (costs[task] == costs[best] && made[task].size() < made[best].size())) {
        best = task;
      }
    }
    made[best].push_back(place);
    costs[best] += plan.cases[cases[place]].cost;
  }
  for (std::vector<size_t>& task : made) {
    std::sort(task.begin(), task.end());
    for (size_t& place : task) place = cases[place];
  }
  return made;
}

}  // namespace assay::run
