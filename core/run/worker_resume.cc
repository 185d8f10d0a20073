#include "core/run/worker_resume.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <system_error>

#include "core/golden/whole_number.h"
#include "core/run/event_file.h"
#include "core/run/events.h"
#include "core/run/repeats.h"

namespace assay::run {

using Json = nlohmann::ordered_json;

Status skip_what_is_done(const std::filesystem::path& events, WorkerPlan* plan) {
  const Result<std::vector<std::string>> lines = read_event_lines(events);
  if (!lines) return lines.status().code() == StatusCode::kNotFound ? Status() : lines.status();
  std::set<std::string> finished;
  std::map<std::string, int> repeats;  // the last one that ended
  std::string running;
  for (const std::string& line : *lines) {
    const Result<Json> event = parse_line(line);
    if (!event) continue;
    try {
      const std::string name = (*event)["event"];
      const std::string id = event->value("case", "");
      if (name == event::kCaseStarted) {
        running = id;
      } else if (name == event::kRepeatFinished) {
        repeats[id] = std::max(repeats[id], json::whole(*event, "repeat", 0));
      } else if (name == event::kCaseFinished) {
        finished.insert(id);
        running.clear();
      }
    } catch (const Json::exception&) {
      continue;  // no event of ours
    }
  }
  std::erase_if(plan->cases, [&](const CaseOrder& order) { return finished.contains(order.id); });
  for (CaseOrder& order : plan->cases) {
    if (const auto found = repeats.find(order.id); found != repeats.end()) {
      order.first_repeat = std::max(order.first_repeat, found->second + 1);
    }
    if (order.id != running) continue;
    std::error_code code;  // what cannot be removed costs nothing but room
    std::filesystem::remove_all(folder_of_repeat(plan->output, order.id, order.first_repeat) / kResavedFolder, code);
  }
  return {};
}

}  // namespace assay::run
