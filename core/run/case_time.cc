#include "core/run/case_time.h"

namespace assay::run {

using Json = nlohmann::ordered_json;

Json case_time(double seconds) { return {{"seconds", seconds}}; }

std::string with_case_begin(const std::string& options, std::chrono::steady_clock::time_point now) {
  if (options.find(kCaseTime) == std::string::npos) return options;  // most engines wait for nobody
  Json json = Json::parse(options, nullptr, false);
  if (!json.is_object() || !json.contains(kCaseTime) || !json[kCaseTime].is_object()) return options;
  json[kCaseTime]["began_ns"] = std::chrono::nanoseconds(now.time_since_epoch()).count();
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace assay::run
