#include "plugins/engines/replay/replay.h"

#include <algorithm>
#include <utility>

#include "assay/sdk.hpp"
#include "plugins/engines/common/options_json.h"
#include "plugins/engines/replay/record_result.h"

namespace assay::engines {

const char* const kReplayOptionsSchema = R"json({
  "$schema": "https://json-schema.org/draft/2020-12/schema",
  "type": "object",
  "additionalProperties": false,
  "required": ["recorded"],
  "properties": {
    "recorded": {"type": "string", "minLength": 1, "description": "path of a golden or actual.json"},
    "ids": {"type": "array", "items": {"type": "string"},
      "description": "ids[i] is the record that answers request i; without it the record named by the decimal id does"}
  }
})json";

Result<std::unique_ptr<ReplayEngine>> ReplayEngine::open(const assay_engine_config& config, const Host& host) {
  std::string path;
  std::vector<std::string> ids;
  OptionsReader reader(sdk::text(config.options), "options of engine replay");
  reader.string("recorded", &path);
  reader.strings("ids", &ids);
  if (Status status = reader.finish(); !status.ok()) return status;
  if (path.empty()) return invalid("options of engine replay: recorded is not set; give the path of a results file");
  Result<ResultSet> recorded = read_results(path);
  if (!recorded) return recorded.status();
  for (const std::string& note : recorded->notes) host.log(ASSAY_LOG_INFO, recorded->path + ": " + note);
  return std::unique_ptr<ReplayEngine>(new ReplayEngine(*std::move(recorded), std::move(ids), host));
}

Status ReplayEngine::submit(const assay_request& request) {
  if (!queue_.empty() && request.id <= queue_.back().id) {
    return invalid("request id " + std::to_string(request.id) + " after " + std::to_string(queue_.back().id) +
                   ", expected ascending ids");
  }
  queue_.push_back({.id = request.id, .forced = request.forced.size > 0, .cancelled = false});
  return {};
}

Status ReplayEngine::cancel(uint64_t id) {
  const auto found = std::find_if(queue_.begin(), queue_.end(),
                                  [id](const Waiting& waiting) { return waiting.id == id && !waiting.cancelled; });
  if (found == queue_.end()) return not_found("request id " + std::to_string(id) + ": not waiting");
  found->cancelled = true;
  return {};
}

Status ReplayEngine::step(std::vector<EngineEvent>* events) {
  events->reserve(queue_.size());
  for (const Waiting& waiting : std::exchange(queue_, {})) {
    Result<EngineResult> result = answer(waiting);
    events->push_back(result ? finished_event(*std::move(result)) : failed_event(waiting.id, result.status()));
  }
  return {};
}

Status ReplayEngine::reset() {
  queue_.clear();
  return {};
}

Result<EngineResult> ReplayEngine::answer(const Waiting& waiting) const {
  if (waiting.cancelled) return Status(StatusCode::kCancelled, "cancelled");
  if (waiting.forced) return unsupported("engine replay: recorded results cannot be forced to other tokens");
  if (!ids_.empty() && waiting.id >= ids_.size()) {
    return not_found("request " + std::to_string(waiting.id) + ": the option ids names " + std::to_string(ids_.size()) +
                     " records");
  }
  const std::string name = ids_.empty() ? std::to_string(waiting.id) : ids_[waiting.id];
  const RequestRecord* record = recorded_.find(name);
  if (record == nullptr) {
    return not_found(recorded_.path + ": no record of request " + name + " among " +
                     std::to_string(recorded_.requests.size()) + "; record it, or name the right file");
  }
  std::vector<std::string> notes;
  Result<EngineResult> result = result_of(*record, waiting.id, &notes);
  for (const std::string& note : notes) host_.log(ASSAY_LOG_WARN, recorded_.path + ": " + note);
  if (!result) return result.status().with(recorded_.path);
  return result;
}

}  // namespace assay::engines
